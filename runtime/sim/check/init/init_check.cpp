// Reads of unwritten memory: the bytes that count, and the moment when they count for lanes that
// may not want the loaded value.
#include "sim/check/init/init_check.h"

#include "sim/check/block_check.h"
#include "sim/check/copies/copy_groups.h"
#include "sim/check/flow/object_loads.h"
#include "sim/check/history/poison.h"
#include "sim/exec/block/cluster.h"
#include "sim/exec/warp/lane_memory.h"

#include <algorithm>
#include <bit>

namespace kernwright::sim {

using ptx::Space;

void InitCheck::enable(std::uint64_t shared_bytes, std::uint64_t local_bytes) {
  shared_bits_.resize(shared_bytes / 64 + 2);
  local_bits_.resize(local_bytes / 64 + 2);
  shared = shared_bits_.data();
  local = local_bits_.data();
}

void InitCheck::begin() {
  loads_.clear();
  slow_.set(SlowPath::kUnwritten, false);
  std::fill(shared_bits_.begin(), shared_bits_.end(), ~std::uint64_t{0});
  std::fill(local_bits_.begin(), local_bits_.end(), ~std::uint64_t{0});
}

std::uint64_t InitCheck::unwritten(const Warp& warp, int lane, const LaneTouch& touch) {
  const std::uint64_t* map = shared;
  std::uint64_t at = touch.address;
  if (touch.space == Space::global) {
    map = regions_.at(touch.address)->poison.load();
    at = touch.address % kRegionBytes;
  } else if (touch.space == Space::cluster) {
    map = touch.owner->unwritten.shared;
    at = touch.address & kOffsetMask;
  } else if (touch.space == Space::local) {
    map = local;
    at = warp.thread(lane) * warp.local_bytes + touch.address;
  }
  return map == nullptr ? 0 : poison_bits(map, at, touch.bytes);
}

/// Whether all read bytes may be padding of an object aligned to `alignment` bytes: some bytes
/// around them are written.
bool InitCheck::lies_in_object(const Warp& warp, int lane, const LaneTouch& touch,
                               std::uint32_t alignment) {
  if (touch.bytes >= alignment) return false;
  LaneTouch around = touch;
  around.address -= touch.address % alignment;
  around.bytes = alignment;
  return unwritten(warp, lane, around) != low_bits(alignment);
}

std::uint64_t InitCheck::judge(const Op* op, Warp& warp, int lane, const LaneTouch& touch) {
  const CheckedProgram& program = place_.launch.program;
  const CheckedOp& info = program.ops[warp.op_index(op)];
  const bool loads = info.kind == CheckKind::load;
  // An asynchronous copy also copies the state.
  const bool moves = touch.mode == AccessKind::read &&
                     (info.kind == CheckKind::copy || info.kind == CheckKind::bulk);
  LoadedBytes loaded{info.wanted, 0, 0, 0, moves ? kMostAlignment : 0};
  if (info.waits) loaded = program.loads.at(warp.op_index(op));
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
  if (now != 0) findings_.uninitialised(op, warp, lane, touch, now);
  const std::uint64_t later = stays ? bits & loaded.later : 0;
  if (later != 0) note_load(op, warp, lane, touch, later, padded, partly);
  return now;
}

/// The lane holds these bytes from now on.
void InitCheck::note_load(const Op* op, const Warp& warp, int lane, const LaneTouch& touch,
                          std::uint64_t bits, bool padded, bool partly) {
  const auto i = static_cast<std::uint32_t>(lane);
  UnwrittenLoad& load = loads_.add({warp.frame, warp.op_index(op)}, i);
  slow_.set(SlowPath::kUnwritten, true);
  if (padded) load.padded |= 1u << i;
  if (partly) load.partly |= 1u << i;
  load.bits[i] = bits;
  load.address[i] = touch.address;
  load.bytes[i] = static_cast<std::uint8_t>(touch.bytes);
  load.space[i] = touch.space;
}

void InitCheck::touch(const Op* op, Warp& warp, int lane, const LaneTouch& touch,
                      std::uint64_t* map, std::uint64_t at) {
  if (touch.mode == AccessKind::write) return set_poison<false>(map, at, touch.bytes);
  LaneTouch all = touch;
  if (const CheckedOp& info = place_.launch.program.ops[warp.op_index(op)]; info.used != 0) {
    // `touch` is a part of the load. All of it is checked together, with the first part.
    const auto start = static_cast<std::uint32_t>(touch.address % info.bytes);
    if (start != static_cast<std::uint32_t>(std::countr_zero(info.used))) return;
    at -= start;
    all.address -= start;
    all.bytes = info.bytes;
  }
  if (!any_poison(map, at, all.bytes)) return;
  clear_poison(map, at, judge(op, warp, lane, all));
  if (touch.mode == AccessKind::atomic) set_poison<false>(map, at, touch.bytes);
}

void InitCheck::read_by_proxy(const Op* op, Warp& warp, int lane, const LaneTouch& touch,
                              const BulkStore* to) {
  const std::uint64_t bits = unwritten(warp, lane, touch);
  if (bits == 0) return;
  if (to != nullptr && bits != low_bits(touch.bytes)) {
    const std::uint64_t address = to->to[0].begin + (touch.address - to->source[0].begin);
    return copies_.push_back({Space::global, lane, address, bits});
  }
  findings_.uninitialised(op, warp, lane, touch, bits);
  set_poison<false>(shared, touch.address, touch.bytes);
}

void InitCheck::use(const Op* op, Warp& warp, int lane, std::uint64_t address,
                    std::uint32_t bytes) {
  if (window_space(address) != Space::local) return;
  address &= ~kWindowMask;
  if (bytes > warp.local_bytes || address > warp.local_bytes - bytes) return;
  const LaneTouch touch{AccessKind::read, Space::local, address, bytes};
  if (unwritten(warp, lane, touch) == low_bits(bytes)) judge(op, warp, lane, touch);
}

void InitCheck::note_parameters(const Op* op, const Warp& warp) {
  for (std::uint32_t m = warp.mask; m != 0; m &= m - 1) {
    const int lane = std::countr_zero(m);
    const std::uint64_t begin =
        warp.reg<std::uint32_t>(kLocalBaseOffset)[static_cast<std::size_t>(lane)] + op->c;
    set_poison<false>(local, warp.thread(lane) * warp.local_bytes + begin, op->flags);
  }
}

void InitCheck::forget_loads(const Op* op, const Warp& warp) {
  loads_.forget({warp.frame, warp.op_index(op)}, warp.mask);
  slow_.set(SlowPath::kUnwritten, loads_.any());
}

void InitCheck::settle_loads(const Op* op, Warp& warp, Space space,
                             const std::uint64_t* addresses) {
  for (const ValueUse& use : place_.launch.program.uses.at(warp.op_index(op))) {
    const UnwrittenLoad* const load = loads_.find({warp.frame, use.load});
    if (load == nullptr || use.lanes == UsingLanes::updated) continue;
    settle_load(op, warp, use, *load, space, addresses);
  }
}

void InitCheck::settle_load(const Op* op, Warp& warp, const ValueUse& use,
                            const UnwrittenLoad& load, Space space,
                            const std::uint64_t* addresses) {
  std::uint32_t lanes = load.lanes & warp.mask;
  if (use.lanes == UsingLanes::where) lanes &= warp.pred(op->c);
  if (use.lanes == UsingLanes::where_not) lanes &= ~warp.pred(op->c);
  for (; lanes != 0; lanes &= lanes - 1) {
    const int lane = std::countr_zero(lanes);
    const auto i = static_cast<unsigned>(lane);
    const std::uint64_t bits = load.bits[i] & use.bytes;
    if (bits == 0) continue;
    const bool is_local = load.space[i] == Space::local;
    const bool padded = (load.padded >> lane & 1) != 0;
    const bool moves = padded || is_local;
    if (use.lanes == UsingLanes::copied && moves &&
        move_on(warp, lane, padded, space, addresses[lane], use.shift, bits))
      continue;
    if (is_local && (load.partly >> lane & 1) != 0) continue;
    const LaneTouch touch{AccessKind::read, load.space[i], load.address[i], load.bytes[i]};
    findings_.uninitialised(warp.code + use.load, warp, lane, touch, bits);
  }
}

/// A store that only moves unwritten bytes: within local memory, and the padding of objects
/// anywhere. False: it is a use, or later uses could not be found.
bool InitCheck::move_on(const Warp& warp, int lane, bool padded, Space to, std::uint64_t address,
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
  copies_.push_back({to, lane, address, bits});
  return true;
}

void InitCheck::end_copies(const Warp& warp) {
  for (const Copy& copy : copies_) {
    if (copy.space == Space::global) {
      const auto bytes = static_cast<std::uint64_t>(std::bit_width(copy.bits));
      regions_.each(copy.address, bytes, AccessKind::write, [&](const LaneTouch& to) {
        std::uint64_t* const map = to.region->poison.load();
        if (map != nullptr) mark_poison(map, to.address % kRegionBytes, copy.bits);
      });
    } else if (copy.space == Space::shared) {
      mark_poison(shared, copy.address, copy.bits);
      history_.new_epoch();
    } else {
      mark_poison(local, warp.thread(copy.lane) * warp.local_bytes + copy.address, copy.bits);
    }
  }
  copies_.clear();
}

void InitCheck::write_target(const AsyncCopy& copy) {
  set_poison<false>(shared, copy.to, copy.bytes);
  if (copy.read != 0) return;
  std::uint64_t to = copy.to;
  each_piece(copy.from, copy.source, [&](std::uint64_t at, std::uint32_t bytes) {
    regions_.each(at, bytes, AccessKind::read, [&](const LaneTouch& part) {
      const std::uint64_t* const map = part.region->poison.load();
      const std::uint64_t begin = part.address % kRegionBytes;
      const std::uint64_t around = begin - begin % kMostAlignment;
      if (map != nullptr && poison_bits(map, around, kMostAlignment) != low_bits(kMostAlignment))
        mark_poison(shared, to, poison_bits(map, begin, part.bytes));
      to += part.bytes;
    });
  });
}

}  // namespace kernwright::sim
