// Page-locked host memory from the driver, and the pool over it.
#include "memory/pinned_resource.h"

#include "core/device.h"
#include "memory/pool/pool_resource.h"

#include <map>
#include <mutex>

namespace kernwright {

CUresult PinnedResource::take(CUdeviceptr& address, std::size_t bytes, const Stream&,
                              const char*& call) {
  call = "cuMemHostAlloc";
  void* memory = nullptr;
  const CUresult result = device_.driver().cuMemHostAlloc(&memory, bytes, kMemHostAllocPortable);
  address = reinterpret_cast<CUdeviceptr>(memory);
  return result;
}

CUresult PinnedResource::give(CUdeviceptr address, const Stream&, const char*& call) noexcept {
  call = "cuMemFreeHost";
  // The driver does not promise to wait for copies that are still in progress.
  const CUresult idle = device_.driver().cuCtxSynchronize();
  const CUresult result = device_.driver().cuMemFreeHost(reinterpret_cast<void*>(address));
  return result != CUDA_SUCCESS ? result : idle;
}

MemoryStats PinnedResource::use_of_device(std::uint64_t, std::uint64_t) const {
  return ledger_.stats();
}

std::shared_ptr<MemoryResource> pinned_resource(Device& device) {
  struct Pools {
    std::mutex mutex;
    std::map<const Device*, std::shared_ptr<MemoryResource>> by_device;
  };
  static auto* const pools = new Pools;  // leaked on purpose: arrays may outlive static objects
  const std::lock_guard lock(pools->mutex);
  auto& pool = pools->by_device[&device];
  if (pool == nullptr) {
    pool = std::make_shared<PoolResource>(std::make_shared<PinnedResource>(device));
  }
  return pool;
}

}  // namespace kernwright
