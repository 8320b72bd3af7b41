// Driver functions for copies; every range is checked against the allocations.
#include "sim/device/memory/copy.h"
#include "base/format.h"
#include "sim/device/memory/checked_range.h"
#include "sim/device/sim_driver.h"

#include <cstring>

namespace kernwright::sim {

std::byte* checked_range(const CheckedRange& range) {
  SimDriver& instance = sim_driver();
  Memory* const memory = instance.get_memory(range.address);
  if (memory != nullptr && memory->search(range.address).contains(range.address, range.bytes)) {
    return host_pointer(range.address);
  }
  const bool device_only = range.side == Side::device || (range.address & kWindowMask) != 0;
  if (memory == nullptr && !device_only && range.address != 0) {
    return reinterpret_cast<std::byte*>(range.address);  // ordinary host memory
  }
  bool freed = false;
  std::string place = instance.describe(range.address, range.bytes, &freed);
  fail_call(CUDA_ERROR_INVALID_VALUE, freed ? FaultKind::use_after_free : FaultKind::bounds,
            format("{} {} {} bytes at {:#x}, {}", range.call, range.write ? "writes" : "reads",
                   range.bytes, range.address, place),
            range.address, range.bytes, place);
}

namespace {

std::uint64_t as_number(const void* pointer) { return reinterpret_cast<std::uint64_t>(pointer); }

/// Whether it is ordinary host memory, outside all simulated memories.
bool is_pageable(std::uint64_t address, Side side) {
  return side != Side::device && sim_driver().get_memory(address) == nullptr;
}

AccessKind touch(bool write) { return write ? AccessKind::write : AccessKind::read; }

std::byte* located(const CheckedRange& range, AccessLog* log) {
  std::byte* const host = checked_range(range);
  if (log != nullptr && !is_pageable(range.address, range.side)) {
    log->note(range.address, range.bytes, touch(range.write));
  }
  return host;
}

/// One row of a copy. `number` counts the rows of all slices.
struct CopiedRow {
  std::size_t number;
  CheckedRange to, from;
};

/// Calls visit(row) for each row with bytes.
template <typename Visitor>
void each_row(const CopyWork& copy, Visitor&& visit) {
  if (copy.bytes == 0) return;
  for (std::size_t i = 0; i < copy.rows * copy.slices; ++i) {
    const std::size_t row = i % copy.rows, slice = i / copy.rows;
    const auto place = [&](const CopyPitch& pitch) {
      return row * pitch.row + slice * pitch.slice;
    };
    visit(CopiedRow{
        i,
        {copy.call, copy.to + place(copy.to_pitch), copy.bytes, copy.to_side, true},
        {copy.call, copy.from + place(copy.from_pitch), copy.bytes, copy.from_side, false}});
  }
}

}  // namespace

void check(const CopyWork& copy) {
  const std::lock_guard execution(sim_driver().execution);
  each_row(copy, [](const CopiedRow& row) {
    checked_range(row.from);
    checked_range(row.to);
  });
}

/// Copies like memmove, so overlapping ranges are well defined.
void perform(const CopyWork& copy, AccessLog* log) {
  std::unique_lock execution(sim_driver().execution, std::defer_lock);
  if (!copy.is_order) execution.lock();  // an order reaches the launch that holds it
  const bool poisons = sim_driver().checks.init() && !is_pageable(copy.to, copy.to_side);
  each_row(copy, [&](const CopiedRow& row) {
    const std::byte* const from =
        copy.staged.empty() ? located(row.from, log) : copy.staged.data() + row.number * copy.bytes;
    std::memmove(located(row.to, log), from, copy.bytes);
    if (poisons && copy.staged.empty()) {
      sim_driver().checks.shadow.copy_poison(row.to.address, row.from.address, copy.bytes);
    } else if (poisons) {
      sim_driver().checks.shadow.unpoison(row.to.address, copy.bytes);
    }
  });
}

/// The driver API's page on synchronization defines the host's waits: a copy from pageable memory
/// is read at the call, one to pageable memory has ended when the call returns.
void copy_async(const StreamUse& use, CopyWork&& copy) {
  const bool from_pageable = is_pageable(copy.from, copy.from_side);
  const bool to_pageable = is_pageable(copy.to, copy.to_side);
  const bool waits = sim_driver().queues.deferred() || sim_driver().order.on();
  if (waits && from_pageable && copy.bytes != 0 && !sim_driver().captures.has(use)) {
    check(copy);
    copy.staged.reserve(copy.rows * copy.slices * copy.bytes);
    each_row(copy, [&](const CopiedRow& row) {
      const auto* const begin = reinterpret_cast<const std::byte*>(row.from.address);
      copy.staged.insert(copy.staged.end(), begin, begin + copy.bytes);
    });
  }
  const auto end = submit(use, std::move(copy));
  if (end == nullptr || !to_pageable) return;
  sim_driver().queues.finish(*end);
  sim_driver().order.host_learns(end->clock);
  sim_driver().queues.surface(*use.context);
}

/// Data from pageable memory may reach the device later; any other copy has ended when the call
/// returns, unless it stays on the device.
void copy_now(CopyWork&& copy, bool wait) {
  const StreamUse use = use_stream(nullptr);
  sim_driver().captures.forbid_synchronous(*use.context);
  if (sim_driver().queues.deferred() || sim_driver().order.on()) {
    sim_driver().queues.finish(use);
    sim_driver().order.host_learns(*use.context, true);
    sim_driver().queues.surface(*use.context);
    wait &= !is_pageable(copy.from, copy.from_side);
  }
  copy_async(use, std::move(copy));
  if (!wait) return;
  sim_driver().queues.finish(use);
  sim_driver().order.host_learns(*use.stream);
  sim_driver().queues.surface(*use.context);
}

namespace {

void copy_on(CUstream stream, CopyWork&& copy) { copy_async(use_stream(stream), std::move(copy)); }

/// The memory must belong to the device of the context named with it.
void require_on(CUcontext context, std::uint64_t address, std::size_t bytes) {
  SimDevice* const device = sim_driver().get_device(context);
  require(device != nullptr, CUDA_ERROR_INVALID_CONTEXT);
  Memory* const memory = sim_driver().get_memory(address);
  if (bytes == 0 || memory == nullptr || memory == &sim_driver().host_memory) return;
  require(memory == &device->memory);
}

}  // namespace

void calls::cuMemcpyHtoD(CUdeviceptr to, const void* from, std::size_t bytes) {
  copy_now({"cuMemcpyHtoD", to, as_number(from), bytes, Side::device, Side::host, {}}, true);
}
void calls::cuMemcpyDtoH(void* to, CUdeviceptr from, std::size_t bytes) {
  copy_now({"cuMemcpyDtoH", as_number(to), from, bytes, Side::host, Side::device, {}}, true);
}
void calls::cuMemcpyDtoD(CUdeviceptr to, CUdeviceptr from, std::size_t bytes) {
  copy_now({"cuMemcpyDtoD", to, from, bytes, Side::device, Side::device, {}}, false);
}
void calls::cuMemcpyHtoDAsync(CUdeviceptr to, const void* from, std::size_t bytes,
                              CUstream stream) {
  copy_on(stream, {"cuMemcpyHtoDAsync", to, as_number(from), bytes, Side::device, Side::host, {}});
}
void calls::cuMemcpyDtoHAsync(void* to, CUdeviceptr from, std::size_t bytes, CUstream stream) {
  copy_on(stream, {"cuMemcpyDtoHAsync", as_number(to), from, bytes, Side::host, Side::device, {}});
}
void calls::cuMemcpyDtoDAsync(CUdeviceptr to, CUdeviceptr from, std::size_t bytes,
                              CUstream stream) {
  copy_on(stream, {"cuMemcpyDtoDAsync", to, from, bytes, Side::device, Side::device, {}});
}

/// Either address may be of the host: unified addressing tells.
void calls::cuMemcpyAsync(CUdeviceptr to, CUdeviceptr from, std::size_t bytes, CUstream stream) {
  copy_on(stream, {"cuMemcpyAsync", to, from, bytes, Side::any, Side::any, {}});
}

/// Comes after all work of the two contexts and before all later work.
void calls::cuMemcpyPeer(CUdeviceptr to, CUcontext to_context, CUdeviceptr from,
                         CUcontext from_context, std::size_t bytes) {
  const auto current = current_context();
  require_on(to_context, to, bytes);
  require_on(from_context, from, bytes);
  for (const auto& context : {live_context(to_context), live_context(from_context), current}) {
    sim_driver().captures.forbid_synchronous(*context);
    sim_driver().queues.finish(*context);
    sim_driver().order.host_learns(*context, false);
    sim_driver().queues.surface(*context);
  }
  copy_now({"cuMemcpyPeer", to, from, bytes, Side::device, Side::device, {}}, true);
}

void calls::cuMemcpyPeerAsync(CUdeviceptr to, CUcontext to_context, CUdeviceptr from,
                              CUcontext from_context, std::size_t bytes, CUstream stream) {
  const StreamUse use = use_stream(stream);
  require_on(to_context, to, bytes);
  require_on(from_context, from, bytes);
  copy_async(use, {"cuMemcpyPeerAsync", to, from, bytes, Side::device, Side::device, {}});
}

}  // namespace kernwright::sim
