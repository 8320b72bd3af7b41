// Reads of memory that nobody wrote: which bytes of them count, and for lanes that may not want
// what they loaded, when they do.
#include "sim/check/block_check.h"
#include "sim/check/poison.h"
#include "sim/exec/cluster.h"

#include <bit>

namespace kernwright::sim {

using ptx::Space;

/// Bit i: nothing has written byte i of what is read.
std::uint64_t BlockCheck::unwritten(const Warp& warp, int lane, const LaneTouch& touch) {
  const std::uint64_t* map = shared_poison;
  std::uint64_t at = touch.address;
  if (touch.space == Space::global) {
    map = region(touch.address)->poison.load();
    at = touch.address % kRegionBytes;
  } else if (touch.space == Space::cluster) {
    map = touch.owner->shared_poison;
    at = touch.address & kOffsetMask;
  } else if (touch.space == Space::local) {
    const std::uint64_t thread = warp.index * std::uint64_t{kLanes} + static_cast<unsigned>(lane);
    map = local_poison;
    at = thread * warp.local_bytes + touch.address;
  }
  return map == nullptr ? 0 : poison_bits(map, at, touch.bytes);
}

std::uint64_t BlockCheck::judge_uninitialised(const Op* op, Warp& warp, int lane,
                                              const LaneTouch& touch) {
  const CheckedOp& info = ops[warp.op_index(op)];
  const std::uint64_t bits = unwritten(warp, lane, touch);
  const bool loads = info.kind == CheckKind::load && info.used == 0;
  // Another block's memory may be gone when its value is used.
  const bool waits = loads && touch.owner == nullptr;
  const std::uint64_t later = waits ? bits & info.loaded.later : 0;
  const std::uint64_t counts = info.loaded.now | (waits ? 0 : info.loaded.later);
  const std::uint64_t now = loads ? bits & counts : bits;
  if (now != 0) report_uninitialised(op, warp, lane, touch, now);
  if (later == 0) return now;
  Doubt& doubt = doubts_[{warp.frame, warp.op_index(op)}];
  doubt.lanes |= 1u << lane;
  doubt.bits[static_cast<unsigned>(lane)] = later;
  doubt.touch[static_cast<unsigned>(lane)] = touch;
  in_doubt = true;
  return now;
}

void BlockCheck::forget_doubts(const Op* op, const Warp& warp) {
  const auto known = doubts_.find({warp.frame, warp.op_index(op)});
  if (known == doubts_.end()) return;
  known->second.lanes &= ~warp.mask;
  if (known->second.lanes != 0) return;
  doubts_.erase(known);
  in_doubt = !doubts_.empty() || !lost_.empty();
}

void BlockCheck::settle_doubts(const Op* op, Warp& warp, Space space,
                               const std::uint64_t* addresses) {
  for (const ValueUse& use : launch_.program.uses.at(warp.op_index(op))) {
    const auto known = doubts_.find({warp.frame, use.load});
    if (known == doubts_.end() || use.lanes == UsingLanes::updated) continue;
    const Doubt& doubt = known->second;
    std::uint32_t lanes = doubt.lanes & warp.mask;
    if (use.lanes == UsingLanes::where) lanes &= warp.pred(op->c);
    if (use.lanes == UsingLanes::where_not) lanes &= ~warp.pred(op->c);
    for (; lanes != 0; lanes &= lanes - 1) {
      const int lane = std::countr_zero(lanes);
      const auto i = static_cast<unsigned>(lane);
      const std::uint64_t bits = doubt.bits[i] & use.bytes;
      if (bits == 0) continue;
      LaneTouch touch = doubt.touch[i];
      touch.addresses = nullptr;
      if (use.lanes == UsingLanes::copied && touch.space == Space::local) {
        if (space == Space::param) continue;
        const bool generic = space == Space::generic;
        const Space to = generic ? window_space(addresses[lane]) : space;
        const std::uint64_t address =
            addresses[lane] & (generic ? ~kWindowMask : ~std::uint64_t{0});
        if (to == Space::local && address <= warp.local_bytes - touch.bytes) {
          unwritten_copies_.push_back({lane, address, bits >> std::countr_zero(use.bytes)});
          continue;
        }
      }
      report_uninitialised(warp.code + use.load, warp, lane, touch, bits);
    }
  }
}

void BlockCheck::end_copies(const Warp& warp) {
  for (const UnwrittenCopy& copy : unwritten_copies_) {
    const std::uint64_t thread =
        warp.index * std::uint64_t{kLanes} + static_cast<unsigned>(copy.lane);
    const std::uint64_t at = thread * warp.local_bytes + copy.address;
    for (std::uint64_t bits = copy.bits; bits != 0; bits &= bits - 1)
      set_poison<true>(local_poison, at + static_cast<unsigned>(std::countr_zero(bits)), 1);
  }
  unwritten_copies_.clear();
}

void BlockCheck::use_value(const Op* op, Warp& warp, int lane, std::uint64_t address,
                           std::uint32_t bytes) {
  if (!init || window_space(address) != Space::local) return;
  address &= ~kWindowMask;
  if (bytes > warp.local_bytes || address > warp.local_bytes - bytes) return;
  const LaneTouch touch{TouchMode::read, Space::local, address, bytes};
  if (std::popcount(unwritten(warp, lane, touch)) == static_cast<int>(bytes))
    judge_uninitialised(op, warp, lane, touch);
}

}  // namespace kernwright::sim
