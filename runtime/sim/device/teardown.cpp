// The end of contexts and of allocations.
#include "sim/device/teardown.h"

#include "base/format.h"
#include "sim/device/sim_driver.h"

namespace kernwright::sim {
namespace {

void forget_pool_use(const AllocationInfo& info) {
  if (info.pool == nullptr) return;
  const std::lock_guard lock(info.pool->mutex);
  info.pool->used -= info.bytes;
}

/// Cached ranges on any device may lie in memory just freed on another.
void expire_cached_ranges(SimDriver& instance) {
  for (const auto& device : instance.devices) device->memory.expire_cached_ranges();
}

std::vector<std::uint64_t> list_memory(SimDriver& instance, const Context& context) {
  std::vector<std::uint64_t> addresses;
  const std::lock_guard lock(instance.allocations_mutex);
  for (const auto& [address, info] : instance.allocations) {
    if (info.context_id == context.id) addresses.push_back(address);
  }
  return addresses;
}

void release(SimDriver& instance, std::uint64_t address, const AllocationInfo& info) {
  const std::lock_guard execution(instance.execution);
  if (info.registered) {
    instance.host_memory.release_host(address);
  } else if (Memory* const memory = instance.get_memory(address); memory != nullptr) {
    memory->free(address);
  }
  expire_cached_ranges(instance);
  forget_pool_use(info);
}

/// Takes the record of `address` out of the table when `condition(info)` holds.
template <typename Condition>
std::optional<AllocationInfo> take_record(std::uint64_t address, Condition&& condition) {
  SimDriver& instance = sim_driver();
  const std::lock_guard lock(instance.allocations_mutex);
  AllocationInfo* const record = instance.allocation_at(address);
  if (record == nullptr || !condition(*record)) return std::nullopt;
  AllocationInfo info = std::move(*record);
  instance.allocations.erase(address);
  return info;
}

bool is_freeable(const AllocationInfo& record, bool host) {
  return !record.registered && (record.kind == AllocationKind::host) == host;
}

[[noreturn]] void refuse_free(std::uint64_t address, bool host, const char* call) {
  bool freed = false;
  const std::string place = sim_driver().describe(address, 1, &freed);
  fail_call(CUDA_ERROR_INVALID_VALUE, freed ? FaultKind::use_after_free : FaultKind::bounds,
            format("{} of {:#x}, which is not the start of live {} memory", call, address,
                   host ? "page-locked host" : "device"),
            address, 0, place);
}

}  // namespace

void tear_down(Context& context) {
  SimDriver& instance = sim_driver();
  instance.captures.leave(context);
  instance.queues.finish(context);
  instance.queues.forget_failure(context);
  const auto belongs = [&](const auto& object) { return object.context->id == context.id; };
  instance.functions.remove_if(belongs);
  instance.modules.remove_if(belongs);
  for (const auto& event : instance.events.remove_if(belongs)) event->forget_capture();
  instance.streams.remove_if(belongs);
  for (const auto& green : instance.green_contexts.remove_if(belongs)) green->destroyed = true;
  instance.arrays.remove_if(belongs);
  instance.textures.remove_context(context.id);
  for (const std::uint64_t address : list_memory(instance, context)) discard_allocation(address);
  const std::lock_guard lock(context.mutex);
  context.peers.clear();
  apply_peers(context);
}

void apply_peers(Context& context) {
  SimDriver& instance = sim_driver();
  std::vector<const Memory*> neighbours{&instance.host_memory};
  for (const int ordinal : context.peers) neighbours.push_back(&instance.device(ordinal).memory);
  const std::lock_guard execution(instance.execution);
  context.device.memory.set_neighbours(std::move(neighbours));
}

void free_allocation(std::uint64_t address, bool host, const char* call) {
  if (const auto graph = graph_memory_at(address); graph != nullptr) {
    if (!graph->live.exchange(false)) refuse_free(address, host, call);
    return;
  }
  const auto info =
      take_record(address, [&](const AllocationInfo& record) { return is_freeable(record, host); });
  if (!info) refuse_free(address, host, call);
  release(sim_driver(), address, *info);
}

void require_allocation(std::uint64_t address, const char* call, bool freeing) {
  SimDriver& instance = sim_driver();
  bool found = false;
  {
    const std::lock_guard lock(instance.allocations_mutex);
    AllocationInfo* const record = instance.allocation_at(address);
    found = record != nullptr && is_freeable(*record, false) && !record->freeing;
    if (found && freeing) record->freeing = true;
  }
  if (!found) refuse_free(address, false, call);
}

void cancel_free(std::uint64_t address) {
  SimDriver& instance = sim_driver();
  const std::lock_guard lock(instance.allocations_mutex);
  AllocationInfo* const record = instance.allocation_at(address);
  if (record != nullptr) record->freeing = false;
}

std::shared_ptr<GraphMemory> graph_memory_at(std::uint64_t address) {
  SimDriver& instance = sim_driver();
  const std::lock_guard lock(instance.allocations_mutex);
  const AllocationInfo* const record = instance.allocation_at(address);
  return record == nullptr ? nullptr : record->graph.lock();
}

void adopt_for_graph(std::uint64_t address, const std::shared_ptr<GraphMemory>& memory) {
  SimDriver& instance = sim_driver();
  const std::lock_guard lock(instance.allocations_mutex);
  AllocationInfo* const record = instance.allocation_at(address);
  require(record != nullptr);
  record->is_graph = true;
  record->graph = memory;
}

void discard_allocation(std::uint64_t address) {
  const auto info = take_record(address, [](const AllocationInfo&) { return true; });
  if (info) release(sim_driver(), address, *info);
}

void release_graph_memory(std::uint64_t address) {
  // The address may be another graph's by now.
  const auto info = take_record(address, [](const AllocationInfo& record) {
    return record.is_graph && record.graph.expired();
  });
  if (info) release(sim_driver(), address, *info);
}

bool release_registered(std::uint64_t address) {
  const auto info =
      take_record(address, [](const AllocationInfo& record) { return record.registered; });
  if (info) release(sim_driver(), address, *info);
  return info.has_value();
}

}  // namespace kernwright::sim
