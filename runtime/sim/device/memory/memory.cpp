// Driver functions for allocating and freeing device and managed memory.
#include "sim/device/sim_driver.h"
#include "sim/device/teardown.h"

namespace kernwright::sim {

std::uint64_t allocate_for(Context& context, std::uint64_t bytes, const AllocationInfo& base) {
  require(bytes != 0);
  SimDriver& instance = sim_driver();
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
  instance.order.forget(*address);
  if (on_device && instance.checks.init()) instance.checks.shadow.poison(*address, bytes);
  return *address;
}

namespace {

/// cuMemFree waits for the device, but not for memory of a pool: there the caller must have waited
/// (driver API, "Stream Ordered Memory Allocator").
void finish_before_free(Context& context, std::uint64_t address) {
  SimDriver& instance = sim_driver();
  {
    const std::lock_guard lock(instance.allocations_mutex);
    const AllocationInfo* const record = instance.allocation_at(address);
    if (record != nullptr && record->pool != nullptr) return;
  }
  instance.queues.finish(context);
  instance.order.host_learns(context, false);
}

/// Managed memory is one and the same everywhere, so advice and prefetches change nothing.
void require_managed(CUdeviceptr address, std::size_t bytes, CUdevice device) {
  current_context();
  require(bytes != 0);
  if (device != kDeviceCpu) sim_driver().device(device);
  const auto known = sim_driver().host_memory.lookup(address);
  require(known && known->kind == AllocationKind::managed && known->range.contains(address, bytes));
}

}  // namespace

void calls::cuMemAlloc(CUdeviceptr* address, std::size_t bytes) {
  const auto context = current_context();
  require(address != nullptr);
  sim_driver().captures.forbid_unsafe();
  *address = allocate_for(*context, bytes, {});
}

void calls::cuMemFree(CUdeviceptr address) {
  const auto context = current_context();
  sim_driver().captures.forbid_unsafe();
  if (address == 0) return;
  require_allocation(address, "cuMemFree", false);
  finish_before_free(*context, address);
  free_allocation(address, false, "cuMemFree");
}

void calls::cuMemAllocManaged(CUdeviceptr* address, std::size_t bytes, unsigned int flags) {
  const auto context = current_context();
  require(address != nullptr);
  require(flags == CU_MEM_ATTACH_GLOBAL || flags == CU_MEM_ATTACH_HOST);
  sim_driver().captures.forbid_unsafe();
  AllocationInfo info;
  info.kind = AllocationKind::managed;
  *address = allocate_for(*context, bytes, info);
}

void calls::cuMemGetInfo(std::size_t* free, std::size_t* total) {
  const auto context = current_context();
  require(free != nullptr && total != nullptr);
  const Memory& memory = context->device.memory;
  *total = memory.capacity();
  *free = memory.capacity() - memory.used();
}

void calls::cuMemAdvise(CUdeviceptr address, std::size_t bytes, CUmem_advise advice,
                        CUdevice device) {
  require(advice >= CU_MEM_ADVISE_SET_READ_MOSTLY && advice <= CU_MEM_ADVISE_UNSET_ACCESSED_BY);
  const bool ignores_device =
      advice <= CU_MEM_ADVISE_UNSET_READ_MOSTLY || advice == CU_MEM_ADVISE_UNSET_PREFERRED_LOCATION;
  require_managed(address, bytes, ignores_device ? kDeviceCpu : device);
}

void calls::cuMemPrefetchAsync(CUdeviceptr address, std::size_t bytes, CUdevice device,
                               CUstream stream) {
  const StreamUse use = use_stream(stream);
  require_managed(address, bytes, device);
  sim_driver().captures.forbid_in(use);
  submit(use, EmptyWork{"cuMemPrefetchAsync"});
}

}  // namespace kernwright::sim
