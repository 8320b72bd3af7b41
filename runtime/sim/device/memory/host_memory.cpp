// Driver functions of page-locked host memory. Its address is the same on host and device.
#include "sim/device/sim_driver.h"
#include "sim/device/teardown.h"

namespace kernwright::sim {
namespace {

constexpr unsigned kAllocFlags =
    kMemHostAllocPortable | kMemHostAllocDeviceMap | kMemHostAllocWriteCombined;
constexpr unsigned kRegisterFlags = kMemHostRegisterPortable | kMemHostRegisterDeviceMap |
                                    kMemHostRegisterIoMemory | kMemHostRegisterReadOnly;

}  // namespace

void calls::cuMemHostAlloc(void** address, std::size_t bytes, unsigned int flags) {
  const auto context = current_context();
  require(address != nullptr && (flags & ~kAllocFlags) == 0);
  sim_driver().captures.forbid_unsafe();
  AllocationInfo info;
  info.kind = AllocationKind::host;
  info.flags = flags;
  *address = reinterpret_cast<void*>(allocate_for(*context, bytes, info));
}

void calls::cuMemAllocHost(void** address, std::size_t bytes) { cuMemHostAlloc(address, bytes, 0); }

void calls::cuMemFreeHost(void* address) {
  const auto context = current_context();
  sim_driver().captures.forbid_unsafe();
  if (address == nullptr) return;
  sim_driver().queues.finish(*context);
  free_allocation(reinterpret_cast<std::uint64_t>(address), true, "cuMemFreeHost");
}

void calls::cuMemHostRegister(void* address, std::size_t bytes, unsigned int flags) {
  const auto context = current_context();
  const auto begin = reinterpret_cast<std::uint64_t>(address);
  const bool fits = bytes != 0 && begin <= ~bytes && ((begin + bytes) & kWindowMask) == 0;
  require(address != nullptr && fits && (flags & ~kRegisterFlags) == 0);
  sim_driver().captures.forbid_unsafe();
  SimDriver& instance = sim_driver();
  require(instance.host_memory.adopt_host(begin, bytes), CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED);
  AllocationInfo info;
  info.kind = AllocationKind::host;
  info.registered = true;
  info.buffer_id = instance.next_id();
  info.context_id = context->id;
  info.bytes = bytes;
  info.flags = flags;
  const std::lock_guard lock(instance.allocations_mutex);
  instance.allocations.emplace(begin, std::move(info));
}

void calls::cuMemHostUnregister(void* address) {
  const auto context = current_context();
  require(address != nullptr);
  sim_driver().captures.forbid_unsafe();
  sim_driver().queues.finish(*context);
  require(release_registered(reinterpret_cast<std::uint64_t>(address)),
          CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED);
}

void calls::cuMemHostGetDevicePointer(CUdeviceptr* device_address, void* address,
                                      unsigned int flags) {
  current_context();
  require(device_address != nullptr && flags == 0);
  const auto known = sim_driver().host_memory.lookup(reinterpret_cast<std::uint64_t>(address));
  require(known && known->kind == AllocationKind::host);
  *device_address = reinterpret_cast<std::uint64_t>(address);
}

}  // namespace kernwright::sim
