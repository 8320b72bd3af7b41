// Ops under checks with an order or with copies of their own: meetings, barriers, fences, copies.
#pragma once

#include "sim/check/handlers/checked_sites.h"
#include "sim/ops/async/async_copy.h"
#include "sim/ops/shuffle_lane.h"

#include <bit>
#include <cstdint>
#include <cstring>

namespace kernwright::sim::KW_SIM_NS {

inline void check_copies(const Op* op, Warp& warp, BlockCheck& check) {
  const std::uint32_t size = warp.reg<std::uint32_t>(op->c)[0];
  const std::uint32_t ignored = (op->flags & kCopyIgnores) != 0 ? warp.pred(op->e) : 0;
  const std::uint32_t* const sizes =
      (op->flags & kCopyHasSize) != 0 ? warp.reg<std::uint32_t>(op->e) : nullptr;
  for (std::uint32_t m = warp.mask; m != 0; m &= m - 1) {
    const int lane = std::countr_zero(m);
    const auto to = copy_target(op, warp, lane);
    const auto from = copy_address(warp, op->b, (op->flags & kCopySource32) != 0, op->imm2, lane);
    std::uint32_t bytes = sizes != nullptr && sizes[lane] < size ? sizes[lane] : size;
    if ((ignored >> lane & 1) != 0) bytes = 0;
    check.copies.issue(op, warp, lane, {.to = to, .from = from, .bytes = size, .source = bytes});
  }
}

inline const Op* check_mbarrier(const Op* op, Warp& warp, BlockCheck& check, OpFn run) {
  alignas(64) std::uint64_t address[kLanes];
  lane_addresses(op, warp, address);
  return check.copies.mbarrier(op, warp, address, run);
}

template <ptx::ShflMode kMode>
inline void read_sources(const Op* op, const Warp& warp, ShuffleSources& read) {
  const auto *b = warp.reg<std::int32_t>(op->b), *c = warp.reg<std::int32_t>(op->c);
  KW_LANES for (int i = 0; i < kLanes; ++i) {
    const std::int32_t from = source_lane<kMode>(i, b[i], c[i]);
    read.from[static_cast<std::size_t>(i)] = from < 0 ? i : from;
  }
}

/// Call it before the shuffle, because its result may replace one of its operands.
inline void read_sources(const Op* op, const Warp& warp, ptx::ShflMode mode, ShuffleSources& read) {
  std::memcpy(read.members.data(), warp.reg<std::uint32_t>(op->e), sizeof read.members);
  if (mode == ptx::ShflMode::up) return read_sources<ptx::ShflMode::up>(op, warp, read);
  if (mode == ptx::ShflMode::down) return read_sources<ptx::ShflMode::down>(op, warp, read);
  if (mode == ptx::ShflMode::bfly) return read_sources<ptx::ShflMode::bfly>(op, warp, read);
  read_sources<ptx::ShflMode::idx>(op, warp, read);
}

/// Call it after the shuffle, when the active lanes are those that took part.
inline void find_lost_sources(const Warp& warp, ShuffleSources& read) {
  alignas(64) std::int32_t lost[kLanes];
  KW_LANES for (int i = 0; i < kLanes; ++i) {
    const auto lane = static_cast<std::size_t>(i);
    const std::uint32_t there = (read.members[lane] | 1u << i) & warp.mask;
    lost[i] = (there >> read.from[lane] & 1) != 0 ? 0 : -1;
  }
  read.lost = pack_mask(lost) & warp.mask;
}

/// Lanes of a warp meet.
[[gnu::always_inline]] inline const Op* checked_meeting(const Op* op, Warp& warp, BlockCheck& check,
                                                        const CheckedOp& info, OpFn run) {
  const std::uint32_t operand[] = {op->a, op->b};
  alignas(64) std::uint32_t members[kLanes];
  std::memcpy(members, warp.reg<std::uint32_t>(operand[info.operand]), sizeof members);
  const Op* const next = run(op, warp);
  if (next != nullptr) check.meet(op, warp, members);
  return next;
}

[[gnu::always_inline]] inline const Op* checked_shuffle(const Op* op, Warp& warp, BlockCheck& check,
                                                        const CheckedOp& info, OpFn run) {
  ShuffleSources read;
  if (check.sync) read_sources(op, warp, info.shuffle, read);
  const Op* const next = run(op, warp);
  if (next == nullptr) return next;
  check.meet(op, warp, check.sync ? read.members.data() : nullptr);
  if (!check.sync) return next;
  find_lost_sources(warp, read);
  if (read.lost != 0 || check.slow.follows()) [[unlikely]]
    check.lost.shuffle(op, warp, read);
  return next;
}

/// The warp's first active lane's value of a register.
inline std::uint32_t first_value(const Warp& warp, std::uint32_t offset) {
  return warp.reg<std::uint32_t>(offset)[std::countr_zero(warp.mask)];
}

/// The checks before an op that moves no data itself.
inline void tell_before(const Op* op, Warp& warp, BlockCheck& check, const CheckedOp& info) {
  switch (info.kind) {
    case CheckKind::copy: return check_copies(op, warp, check);
    case CheckKind::copy_group: return check.copies.end_group(warp);
    case CheckKind::copy_wait:
      return check.copies.wait(warp, info.waits_for_all ? 0 : first_value(warp, op->a),
                               info.waits_for_all);
    case CheckKind::fence: return check.fence(warp, info.reach);
    case CheckKind::bulk_group: return check.proxy.end_bulk_group(warp);
    case CheckKind::proxy_fence: return check.fence_proxy(warp);
    case CheckKind::map_fence: return check.proxy.fence_maps(op, warp);
    case CheckKind::cluster_arrive: return check.cluster.arrive(warp, info.release);
    default: return;
  }
}

/// The checks after the op has run. It has not if lanes still wait for others: null.
inline void tell_after(const Op* op, Warp& warp, BlockCheck& check, const CheckedOp& info) {
  switch (info.kind) {
    case CheckKind::bulk_wait:
      return check.proxy.wait_for_stores(warp, first_value(warp, op->a), info.reads_only);
    case CheckKind::wgmma: return check.proxy.wgmma(op, warp);
    case CheckKind::wgmma_group: return check.proxy.end_wgmma_group(warp);
    case CheckKind::wgmma_wait: return check.proxy.wait_for_wgmma(warp, first_value(warp, op->a));
    default: return;
  }
}

/// All but memory and meetings.
[[gnu::noinline]] inline const Op* checked_other(const Op* op, Warp& warp, BlockCheck& check,
                                                 const CheckedOp& info, OpFn run) {
  tell_before(op, warp, check, info);
  const Op* const next = run(op, warp);
  if (info.kind == CheckKind::parameters && check.init) check.unwritten.note_parameters(op, warp);
  if (next != nullptr) tell_after(op, warp, check, info);
  return next;
}

}  // namespace kernwright::sim::KW_SIM_NS
