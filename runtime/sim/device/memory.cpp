// Driver functions that make and end device memory.
#include "sim/device/allocation.h"
#include "sim/device/platform.h"
#include "sim/device/teardown.h"

namespace kernwright::sim {

std::uint64_t allocate_for(Context& context, std::uint64_t bytes, const AllocationInfo& base) {
  require(bytes != 0);
  Platform& instance = platform();
  const bool on_device = base.kind == AllocationKind::device;
  Memory& memory = on_device ? context.device.memory : instance.host_memory;
  const auto address = memory.allocate(bytes, base.kind);
  require(address.has_value(), CUDA_ERROR_OUT_OF_MEMORY);
  AllocationInfo info = base;
  info.buffer_id = instance.next_id();
  info.context_id = context.id;
  info.bytes = bytes;
  try {
    const std::lock_guard lock(instance.allocations_mutex);
    instance.allocations.emplace(*address, std::move(info));
  } catch (...) {
    memory.free(*address);
    throw;
  }
  return *address;
}

namespace {

CUresult mem_alloc(CUdeviceptr* address, std::size_t bytes) {
  return guarded([&] {
    const auto context = current_context();
    require(address != nullptr);
    *address = allocate_for(*context, bytes, {});
  });
}

CUresult mem_free(CUdeviceptr address) {
  return guarded([&] {
    current_context();
    if (address != 0) free_allocation(address, false, "cuMemFree");
  });
}

CUresult mem_alloc_managed(CUdeviceptr* address, std::size_t bytes, unsigned int flags) {
  return guarded([&] {
    const auto context = current_context();
    require(address != nullptr);
    require(flags == CU_MEM_ATTACH_GLOBAL || flags == CU_MEM_ATTACH_HOST);
    AllocationInfo info;
    info.kind = AllocationKind::managed;
    *address = allocate_for(*context, bytes, info);
  });
}

CUresult mem_get_info(std::size_t* free, std::size_t* total) {
  return guarded([&] {
    const auto context = current_context();
    require(free != nullptr && total != nullptr);
    const Memory& memory = context->device.memory;
    *total = memory.capacity();
    *free = memory.capacity() - memory.used();
  });
}

}  // namespace

void install_memory(DriverApi& api) {
  api.cuMemAlloc = mem_alloc;
  api.cuMemFree = mem_free;
  api.cuMemAllocManaged = mem_alloc_managed;
  api.cuMemGetInfo = mem_get_info;
}

}  // namespace kernwright::sim
