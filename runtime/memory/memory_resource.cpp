// The plain memory resources, and the resource that arrays of a device come from.
#include "memory/memory_resource.h"

#include "base/errors.h"
#include "base/format.h"
#include "core/device.h"

#include <map>
#include <mutex>
#include <utility>

namespace kernwright {
namespace {

/// Bytes in use and held by the driver's default pool; zeros where it does not tell.
struct PoolUse {
  cuuint64_t used = 0;
  cuuint64_t reserved = 0;
};

PoolUse pool_use(const DriverApi& api, CUmemoryPool pool) noexcept {
  PoolUse use;
  if (pool == nullptr) return use;
  if (api.cuMemPoolGetAttribute(pool, CU_MEMPOOL_ATTR_USED_MEM_CURRENT, &use.used) !=
          CUDA_SUCCESS ||
      api.cuMemPoolGetAttribute(pool, CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT, &use.reserved) !=
          CUDA_SUCCESS) {
    return {};
  }
  return use;
}

/// Throws what a refused allocation means: OutOfMemory with all sizes, else what check() makes of
/// it.
[[noreturn]] void fail_allocation(Device& device, CUresult result, const char* call,
                                  std::size_t bytes, CUmemoryPool pool) {
  if (result != CUDA_ERROR_OUT_OF_MEMORY) device.fail(result, call, format("{} bytes", bytes));
  const DriverApi& api = device.driver();
  std::size_t free = 0;
  std::size_t total = 0;
  if (api.cuMemGetInfo(&free, &total) != CUDA_SUCCESS) free = total = 0;
  const PoolUse use = pool_use(api, pool);
  const std::uint64_t used = pool != nullptr ? use.used : total - free;
  const std::uint64_t reserved = pool != nullptr ? use.reserved : total - free;
  throw OutOfMemory(
      format("{}: no memory for {} bytes; {} bytes used, {} reserved, {} of {} free: free arrays "
             "that are no longer needed, or work in smaller pieces",
             device.identify(), bytes, used, reserved, free, total),
      bytes, used, reserved, free);
}

void require_own_stream(const Device& device, const Stream& stream) {
  if (!stream || &stream.device() == &device) return;
  throw InvalidArgument(
      format("memory of {} cannot be allocated on {}", device.identify(), stream.identify()));
}

}  // namespace

DeviceResource::DeviceResource(Device& device) : device_(device) {}

CUdeviceptr DeviceResource::allocate(std::size_t bytes, const Stream& stream) {
  require_own_stream(device_, stream);
  const ContextGuard guard(device_);
  CUdeviceptr address = 0;
  const CUresult result = device_.driver().cuMemAlloc(&address, bytes);
  if (result != CUDA_SUCCESS) fail_allocation(device_, result, "cuMemAlloc", bytes, nullptr);
  return address;
}

void DeviceResource::deallocate(CUdeviceptr address, std::size_t, const Stream&) noexcept {
  // cuMemFree waits for all work of the context, so that no stream has to be considered.
  ReleaseGuard guard(device_);
  if (guard) guard.report(device_.driver().cuMemFree(address), "cuMemFree");
}

AsyncResource::AsyncResource(Device& device) : device_(device) {
  if (device_.attribute(CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED) == 0) return;
  const ContextGuard guard(device_);
  const DriverApi& api = device_.driver();
  device_.check(api.cuDeviceGetDefaultMemPool(&pool_, device_.handle()),
                "cuDeviceGetDefaultMemPool");
  cuuint64_t keep_everything = ~cuuint64_t{0};
  device_.check(
      api.cuMemPoolSetAttribute(pool_, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, &keep_everything),
      "cuMemPoolSetAttribute");
}

CUdeviceptr AsyncResource::allocate(std::size_t bytes, const Stream& stream) {
  require_own_stream(device_, stream);
  const DriverApi& api = device_.driver();
  const ContextGuard guard(device_);
  CUdeviceptr address = 0;
  if (pool_ == nullptr) {
    const CUresult result = api.cuMemAlloc(&address, bytes);
    if (result != CUDA_SUCCESS) fail_allocation(device_, result, "cuMemAlloc", bytes, nullptr);
    return address;
  }
  CUresult result = api.cuMemAllocAsync(&address, bytes, stream.handle());
  if (result == CUDA_ERROR_OUT_OF_MEMORY) {
    // What the pool keeps for other sizes may be enough once it is given back.
    if (api.cuMemPoolTrimTo(pool_, 0) == CUDA_SUCCESS) {
      result = api.cuMemAllocAsync(&address, bytes, stream.handle());
    }
  }
  if (result != CUDA_SUCCESS) fail_allocation(device_, result, "cuMemAllocAsync", bytes, pool_);
  return address;
}

void AsyncResource::deallocate(CUdeviceptr address, std::size_t, const Stream& stream) noexcept {
  ReleaseGuard guard(device_);
  if (!guard) return;
  const DriverApi& api = device_.driver();
  if (pool_ == nullptr) {
    guard.report(api.cuMemFree(address), "cuMemFree");
  } else {
    guard.report(api.cuMemFreeAsync(address, stream.handle()), "cuMemFreeAsync");
  }
}

void AsyncResource::trim(std::size_t bytes_to_keep) {
  if (pool_ == nullptr) return;
  const ContextGuard guard(device_);
  device_.check(device_.driver().cuMemPoolTrimTo(pool_, bytes_to_keep), "cuMemPoolTrimTo");
}

namespace {

/// Resources by device. Leaked on purpose: arrays may outlive every other static object.
struct DefaultResources {
  struct Entry {
    std::shared_ptr<MemoryResource> first;    ///< made by the library, kept for good
    std::shared_ptr<MemoryResource> current;  ///< what new arrays come from
  };
  std::mutex mutex;
  std::map<const Device*, Entry> by_device;
};

DefaultResources& defaults() {
  static auto* const instance = new DefaultResources;
  return *instance;
}

}  // namespace

std::shared_ptr<MemoryResource> default_resource(Device& device) {
  DefaultResources& all = defaults();
  {
    const std::lock_guard lock(all.mutex);
    if (const auto found = all.by_device.find(&device); found != all.by_device.end()) {
      return found->second.current;
    }
  }
  // Made without the lock: the driver may take its time, and other devices need not wait.
  const auto made = std::make_shared<AsyncResource>(device);
  const std::lock_guard lock(all.mutex);
  return all.by_device.emplace(&device, DefaultResources::Entry{made, made}).first->second.current;
}

std::shared_ptr<MemoryResource> set_default_resource(Device& device,
                                                     std::shared_ptr<MemoryResource> resource) {
  if (resource != nullptr && &resource->device() != &device) {
    throw InvalidArgument(format("a resource of {} cannot serve {}", resource->device().identify(),
                                 device.identify()));
  }
  default_resource(device);
  DefaultResources& all = defaults();
  const std::lock_guard lock(all.mutex);
  DefaultResources::Entry& entry = all.by_device.at(&device);
  return std::exchange(entry.current, resource != nullptr ? std::move(resource) : entry.first);
}

}  // namespace kernwright
