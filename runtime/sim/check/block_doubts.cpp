// Reads of memory that nobody wrote: which bytes of them count, and for lanes that may not want
// what they loaded, when they do.
#include "sim/check/block_check.h"
#include "sim/check/object_loads.h"
#include "sim/check/poison.h"
#include "sim/exec/cluster.h"
#include "sim/exec/lane_memory.h"

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

/// Whether what is read may be nothing but padding of an object that is aligned to `alignment`
/// bytes: something around it is written.
bool BlockCheck::lies_in_object(const Warp& warp, int lane, const LaneTouch& touch,
                                std::uint32_t alignment) {
  if (touch.bytes >= alignment) return false;
  LaneTouch around = touch;
  around.address -= touch.address % alignment;
  around.bytes = alignment;
  return unwritten(warp, lane, around) != low_bits(alignment);
}

std::uint64_t BlockCheck::judge_uninitialised(const Op* op, Warp& warp, int lane,
                                              const LaneTouch& touch) {
  const CheckedOp& info = ops[warp.op_index(op)];
  const bool loads = info.kind == CheckKind::load;
  // A copy that runs on its own takes the state along.
  const bool moves = touch.mode == AccessKind::read &&
                     (info.kind == CheckKind::copy || info.kind == CheckKind::bulk);
  LoadedBytes loaded{info.wanted, 0, 0, 0, moves ? kMostAlignment : 0};
  if (info.waits) loaded = launch_.program.loads.at(warp.op_index(op));
  std::uint64_t wanted = low_bits(touch.bytes);
  if (loads) wanted &= info.used != 0 ? info.wanted & info.used : info.wanted;
  const std::uint64_t all = unwritten(warp, lane, touch), bits = all & wanted;
  // Compilers copy objects with their padding, several bytes at a time.
  const bool padded =
      (loads || moves) && (bits != wanted || lies_in_object(warp, lane, touch, loaded.alignment));
  const bool partly = all != low_bits(touch.bytes);
  const bool ignores = moves ? padded : partly && touch.space == Space::local;
  // Another block's memory may be gone when its value is used.
  const bool stays = touch.owner == nullptr;
  std::uint64_t counts = loads ? loaded.now : ~std::uint64_t{0};
  if (!stays) counts |= loaded.later;
  if (!padded) counts |= loaded.passed;
  const std::uint64_t now = ignores ? 0 : bits & counts;
  if (now != 0) report_uninitialised(op, warp, lane, touch, now);
  const std::uint64_t later = stays ? bits & loaded.later : 0;
  if (later == 0) return now;
  const auto i = static_cast<std::uint32_t>(lane);
  Doubt& doubt = doubts_.add({warp.frame, warp.op_index(op)}, i);
  if (padded) doubt.padded |= 1u << i;
  if (partly) doubt.partly |= 1u << i;
  doubt.bits[i] = later;
  doubt.address[i] = touch.address;
  doubt.bytes[i] = static_cast<std::uint8_t>(touch.bytes);
  doubt.space[i] = touch.space;
  note_doubts();
  return now;
}

void BlockCheck::forget_doubts(const Op* op, const Warp& warp) {
  doubts_.forget({warp.frame, warp.op_index(op)}, warp.mask);
  note_doubts();
}

void BlockCheck::settle_doubts(const Op* op, Warp& warp, Space space,
                               const std::uint64_t* addresses) {
  for (const ValueUse& use : launch_.program.uses.at(warp.op_index(op))) {
    const Doubt* const known = doubts_.find({warp.frame, use.load});
    if (known == nullptr || use.lanes == UsingLanes::updated) continue;
    const Doubt& doubt = *known;
    std::uint32_t lanes = doubt.lanes & warp.mask;
    if (use.lanes == UsingLanes::where) lanes &= warp.pred(op->c);
    if (use.lanes == UsingLanes::where_not) lanes &= ~warp.pred(op->c);
    for (; lanes != 0; lanes &= lanes - 1) {
      const int lane = std::countr_zero(lanes);
      const auto i = static_cast<unsigned>(lane);
      const std::uint64_t bits = doubt.bits[i] & use.bytes;
      if (bits == 0) continue;
      const bool is_local = doubt.space[i] == Space::local;
      const bool padded = (doubt.padded >> lane & 1) != 0;
      const bool moves = padded || is_local;
      if (use.lanes == UsingLanes::copied && moves &&
          move_on(warp, lane, padded, space, addresses[lane], use.shift, bits))
        continue;
      if (is_local && (doubt.partly >> lane & 1) != 0) continue;
      const LaneTouch touch{AccessKind::read, doubt.space[i], doubt.address[i], doubt.bytes[i]};
      report_uninitialised(warp.code + use.load, warp, lane, touch, bits);
    }
  }
}

/// A store of unwritten bytes that only moves them: within local memory, and the padding of objects
/// anywhere. False: it is a use, or nobody could tell of it later.
bool BlockCheck::move_on(const Warp& warp, int lane, bool padded, Space to, std::uint64_t address,
                         int shift, std::uint64_t bits) {
  if (to == Space::generic) {
    to = window_space(address);
    if (to != Space::global) address &= ~kWindowMask;
  }
  if (!padded && to != Space::local) return false;
  const int skipped = std::countr_zero(bits);
  address += static_cast<std::uint64_t>(std::int64_t{shift} + skipped);
  bits >>= skipped;
  if (to != Space::global) {
    if (to != Space::local && to != Space::shared) return false;
    const std::uint64_t limit = to == Space::local ? warp.local_bytes : warp.shared_bytes;
    if (address > limit || static_cast<std::uint64_t>(std::bit_width(bits)) > limit - address)
      return false;
  }
  unwritten_copies_.push_back({to, lane, address, bits});
  return true;
}

void BlockCheck::end_copies(const Warp& warp) {
  for (const UnwrittenCopy& copy : unwritten_copies_) {
    const std::uint64_t thread =
        warp.index * std::uint64_t{kLanes} + static_cast<unsigned>(copy.lane);
    if (copy.space == Space::global) {
      by_region(
          copy.address, std::bit_width(copy.bits),
          [&](const LaneTouch& to) {
            std::uint64_t* const map = to.region->poison.load();
            if (map != nullptr) mark_poison(map, to.address % kRegionBytes, copy.bits);
          },
          AccessKind::write);
    } else if (copy.space == Space::shared) {
      mark_poison(shared_poison, copy.address, copy.bits);
      new_epoch();
    } else {
      mark_poison(local_poison, thread * warp.local_bytes + copy.address, copy.bits);
    }
  }
  unwritten_copies_.clear();
}

void BlockCheck::write_target(const AsyncCopy& copy) {
  set_poison<false>(shared_poison, copy.to, copy.bytes);
  if (copy.read != 0) return;
  std::uint64_t to = copy.to;
  each_piece(copy.from, copy.source, [&](std::uint64_t at, std::uint32_t bytes) {
    by_region(
        at, bytes,
        [&](const LaneTouch& part) {
          const std::uint64_t* const map = part.region->poison.load();
          const std::uint64_t place = part.address % kRegionBytes;
          const std::uint64_t around = place - place % kMostAlignment;
          if (map != nullptr &&
              poison_bits(map, around, kMostAlignment) != low_bits(kMostAlignment))
            mark_poison(shared_poison, to, poison_bits(map, place, part.bytes));
          to += part.bytes;
        },
        AccessKind::read);
  });
}

void BlockCheck::used(const Op* op, Warp& warp, int lane, std::uint64_t address,
                      std::uint32_t bytes) {
  if (!init || window_space(address) != Space::local) return;
  address &= ~kWindowMask;
  if (bytes > warp.local_bytes || address > warp.local_bytes - bytes) return;
  const LaneTouch touch{AccessKind::read, Space::local, address, bytes};
  if (unwritten(warp, lane, touch) == low_bits(bytes)) judge_uninitialised(op, warp, lane, touch);
}

}  // namespace kernwright::sim
