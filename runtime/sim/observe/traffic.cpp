// The accesses of the memory instruction at an op, by space, before it runs.
#include "sim/observe/traffic.h"

#include "sim/exec/copy/bulk_ops.h"
#include "sim/exec/warp/lane_memory.h"
#include "sim/observe/memory_request.h"
#include "sim/observe/observer.h"
#include "sim/ptx/isa.h"

#include <bit>

namespace kernwright::sim {
namespace {

using ptx::Space;

/// The requests of one instruction.
struct Requests {
  MemoryRequest global, shared, local;
  bool reaches_others = false;  ///< shared memory of other blocks
};

void add(Requests& requests, const Warp& warp, int lane, Space space, std::uint64_t address,
         std::uint32_t bytes) {
  if (space == Space::generic) {
    space = window_space(address);
    if (space == Space::shared) space = Space::cluster;
    if (space != Space::global) address &= ~kWindowMask;
  }
  const bool is_far = space == Space::cluster && !is_local_shared(warp, address);
  requests.reaches_others |= is_far;
  if (is_far) return;
  switch (space) {
    case Space::global: return requests.global.add(lane, address, bytes);
    case Space::cluster: address &= 0xffffff; [[fallthrough]];
    case Space::shared: return requests.shared.add(lane, address, bytes);
    case Space::local: return requests.local.add(lane, address, bytes);
    default: return;
  }
}

void add_atomic(LineCounts& counts, const MemoryRequest& request) {
  if (request.mask == 0) return;
  ++counts.atomics;
  counts.atomic_threads += static_cast<std::uint64_t>(std::popcount(request.mask));
  counts.atomic_passes += same_address_passes(request);
}

void add_global(LineCounts& counts, const MemoryRequest& request, bool store) {
  if (request.mask == 0) return;
  const GlobalTraffic traffic = global_traffic(request);
  ++(store ? counts.global_stores : counts.global_loads);
  counts.global_bytes += traffic.bytes;
  counts.global_sectors += traffic.sectors;
  counts.global_ideal_sectors += traffic.ideal_sectors;
  counts.global_lines += traffic.lines;
}

void add_shared(LineCounts& counts, const MemoryRequest& request, bool store) {
  if (request.mask == 0) return;
  const SharedTraffic traffic = shared_traffic(request);
  ++(store ? counts.shared_stores : counts.shared_loads);
  counts.shared_wavefronts += traffic.wavefronts;
  counts.shared_ideal_wavefronts += traffic.ideal_wavefronts;
}

void add_local(LineCounts& counts, const MemoryRequest& request, bool store) {
  if (request.mask == 0) return;
  ++(store ? counts.local_stores : counts.local_loads);
  for (const std::uint8_t bytes : request.bytes) counts.local_bytes += bytes;
  counts.local_sectors += local_sectors(request);
}

LineCounts count_copy(const Op* op, const Warp& warp, const ObservedOp& info) {
  Requests from, to;
  for (std::uint32_t m = warp.mask; m != 0; m &= m - 1) {
    const int lane = std::countr_zero(m);
    const std::uint32_t read = copied_bytes(op, warp, info, lane);
    if (read != 0)
      add(from, warp, lane, Space::global, lane_address(op, warp, info, lane, true), read);
    add(to, warp, lane, Space::shared, lane_address(op, warp, info, lane),
        warp.reg<std::uint32_t>(op->c)[0]);
  }
  LineCounts counts;
  add_global(counts, from.global, false);
  add_shared(counts, to.shared, true);
  return counts;
}

/// The most bytes of global memory that the instruction moves by no request of the warp.
std::uint64_t most_uncounted_bytes(const Op* op, const Warp& warp, const ObservedOp& info) {
  constexpr std::uint64_t kFragment = 1024, kTexels = 512;
  constexpr std::uint64_t kTensorBox = std::uint64_t{1} << 18;  // above a block's shared memory
  const ptx::Instruction& instruction = *info.origin.instruction;
  switch (instruction.row->handler) {
    case ptx::Handler::wmma: return instruction.modifiers.space == Space::shared ? 0 : kFragment;
    case ptx::Handler::cp_bulk: break;
    case ptx::Handler::wgmma:
    case ptx::Handler::st_async:
    case ptx::Handler::red_async: return 0;
    default: return kTexels;
  }
  const std::uint32_t* const sizes = warp.reg<std::uint32_t>(op->c);
  std::uint64_t bytes = 0;
  for (std::uint32_t m = warp.mask; m != 0; m &= m - 1) {
    switch (BulkForm::unpack(op->flags).kind) {
      case BulkForm::to_shared:
      case BulkForm::to_global: bytes += sizes[std::countr_zero(m)]; break;
      case BulkForm::tensor_to_shared:
      case BulkForm::tensor_to_global: bytes += kTensorBox; break;
      default: break;
    }
  }
  return bytes;
}

}  // namespace

LineCounts count_memory(const Op* op, const Warp& warp, const ObservedOp& info) {
  LineCounts counts;
  counts.uncounted = info.uncounted ? 1 : 0;
  if (info.uncounted) counts.uncounted_bytes = most_uncounted_bytes(op, warp, info);
  if (info.kind == CheckKind::none) return counts;
  if (info.kind == CheckKind::copy) return count_copy(op, warp, info);
  const bool is_tile = info.tiles != 0;
  Requests requests;
  for (std::uint32_t m = warp.mask; m != 0; m &= m - 1) {
    const int lane = std::countr_zero(m);
    if (is_tile && lane >= info.tiles * 8) break;
    add(requests, warp, lane, info.address.space, lane_address(op, warp, info, lane), info.bytes);
  }
  counts.uncounted += requests.reaches_others ? 1 : 0;
  if (info.kind == CheckKind::atomic) {
    add_atomic(counts, requests.global);
    add_atomic(counts, requests.shared);
    return counts;
  }
  const bool store = info.kind == CheckKind::store || info.kind == CheckKind::tile_store;
  add_global(counts, requests.global, store);
  add_shared(counts, requests.shared, store);
  add_local(counts, requests.local, store);
  return counts;
}

LineCounts count_branch(const Op* op, const Warp& warp, const ObservedOp& info) {
  LineCounts counts;
  counts.branches = 1;
  const ptx::Instruction& instruction = *info.origin.instruction;
  bool parts = false;
  if (instruction.row->handler == ptx::Handler::brx) {
    const auto& table = warp.program->tables->branch_tables[static_cast<std::size_t>(op->target)];
    const auto* const index = warp.reg<std::uint32_t>(op->a);
    const auto target = [&](int lane) {
      return index[lane] < table.size() ? table[index[lane]] : 0;  // 0: it will fault
    };
    const int first = std::countr_zero(warp.mask);
    for (std::uint32_t m = warp.mask; m != 0; m &= m - 1)
      parts |= target(std::countr_zero(m)) != target(first);
  } else {
    const std::uint32_t on = guard_lanes(warp, info) & warp.mask;
    parts = on != 0 && on != warp.mask;
  }
  counts.divergent_branches = parts ? 1 : 0;
  return counts;
}

}  // namespace kernwright::sim
