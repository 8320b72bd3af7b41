// The op in front of every checked one: looks at the shadow of what the access touches, then does
// what the program says.
#include "sim/check/poison.h"
#include "sim/exec/fast_handlers.h"
#include "sim/exec/ops/async_copy.h"
#include "sim/exec/ops/checked_lanes.h"
#include "sim/exec/ops/memory_plan.h"

#include <bit>

namespace kernwright::sim::KW_SIM_NS {

CheckedHandlers checked_handlers();

namespace {

using ptx::Space;

/// One access of a warp.
struct WarpTouch {
  const Op* op;
  const CheckedOp* info;
  TouchMode mode;
  std::uint32_t mask;
  std::uint32_t bytes;           ///< per lane
  int first;                     ///< lowest active lane
  const std::uint64_t* address;  ///< of all lanes, as the instruction has them
};

/// Notes the lanes' distances anew.
[[gnu::noinline]] void replan(CheckSite& site, const WarpTouch& touch) {
  const std::uint64_t base = touch.address[touch.first];
  std::int64_t low = 0, high = 0;
  std::uint64_t bits = 0;
  for (int i = 0; i < kLanes; ++i) {
    const bool on = (touch.mask >> i & 1) != 0;
    const auto offset = on ? static_cast<std::int64_t>(touch.address[i] - base) : 0;
    site.offsets[static_cast<unsigned>(i)] = static_cast<std::uint64_t>(offset);
    bits |= static_cast<std::uint64_t>(offset);
    low = offset < low ? offset : low;
    high = offset > high ? offset : high;
  }
  site.mask = touch.mask;
  site.low = static_cast<std::uint64_t>(-low);
  site.high = static_cast<std::uint64_t>(high) + touch.bytes;
  site.aligned = (bits & (touch.bytes - 1)) == 0;
  MemorySite shape;
  shape.mask = touch.mask;
  shape.offsets = site.offsets;
  site.pattern = static_cast<std::uint8_t>(classify(shape, touch.first, touch.bytes));
}

[[gnu::always_inline]] inline bool fits(const CheckSite& site, const WarpTouch& touch) {
  const std::uint64_t base = touch.address[touch.first];
  std::uint64_t changed = 0;
  for (int i = 0; i < kLanes; ++i) {
    const std::uint64_t on = touch.mask == kAllLanes || (touch.mask >> i & 1) != 0
                                 ? ~std::uint64_t{0}
                                 : std::uint64_t{0};
    changed |= ((touch.address[i] - base) ^ site.offsets[static_cast<unsigned>(i)]) & on;
  }
  return changed == 0 && site.mask == touch.mask;
}

/// Calls f(lane, address relative to `base`) for each active lane.
template <typename F>
[[gnu::always_inline]] inline void each_lane(const CheckSite& site, const WarpTouch& touch, F f) {
  for (std::uint32_t m = touch.mask; m != 0; m &= m - 1) {
    const int lane = std::countr_zero(m);
    f(lane, site.offsets[static_cast<unsigned>(lane)]);
  }
}

/// Reads or clears the bits of the bytes that the lanes touch. `at` is the first active lane's
/// place in the bitmap. Returns whether a byte that is read was never written.
[[gnu::always_inline]] inline bool poisoned(const CheckSite& site, const WarpTouch& touch,
                                            std::uint64_t* map, std::uint64_t at) {
  const auto pattern = static_cast<Pattern>(site.pattern);
  if (touch.mode != TouchMode::write) {
    if (pattern == Pattern::uniform) return any_poison(map, at, touch.bytes);
    if (pattern == Pattern::contiguous && touch.mask == kAllLanes)
      return any_poison(map, at, touch.bytes * std::uint64_t{kLanes});
    if (pattern == Pattern::half_uniform)
      return any_poison(map, at, touch.bytes) ||
             any_poison(map, at + site.offsets[16], touch.bytes);
    if (pattern == Pattern::half_contiguous)
      return any_poison(map, at, touch.bytes * std::uint64_t{kLanes / 2}) ||
             any_poison(map, at + site.offsets[16], touch.bytes * std::uint64_t{kLanes / 2});
    std::uint64_t bits = 0;
    each_lane(site, touch, [&](int, std::uint64_t offset) {
      bits |= poison_bits(map, at + offset, touch.bytes);
    });
    return bits != 0;
  }
  if (pattern == Pattern::contiguous && touch.mask == kAllLanes) {
    set_poison<false>(map, at, touch.bytes * std::uint64_t{kLanes});
  } else {
    each_lane(site, touch,
              [&](int, std::uint64_t offset) { set_poison<false>(map, at + offset, touch.bytes); });
  }
  return false;
}

template <bool kGlobal>
[[gnu::always_inline]] inline CellView<kGlobal> view_of(const BlockCheck& check,
                                                        const CheckedOp& info, Cell* write,
                                                        Cell* read) {
  const Cell floor = kGlobal && check.floor < check.first ? check.first : check.floor;
  return {write,
          read,
          floor,
          check.first,
          check.launch_floor,
          check.stamp | Cell{info.site} << kSiteShift | kAllBytes};
}

/// Distance of the second half, which may lie below the first.
[[gnu::always_inline]] inline std::uint64_t half_words(std::uint64_t bytes) {
  return static_cast<std::uint64_t>(static_cast<std::int64_t>(bytes) / 4);
}

/// Whole patterns; false where lanes must be looked at one by one.
template <bool kGlobal>
[[gnu::always_inline]] inline bool race_by_pattern(const CellView<kGlobal>& view, bool parts,
                                                   Pattern pattern, std::uint64_t half,
                                                   const WarpTouch& touch, std::uint64_t word,
                                                   std::uint32_t thread0) {
  const std::uint32_t words = touch.bytes / 4;
  const auto shift = static_cast<std::uint32_t>(std::countr_zero(words));
  if (pattern == Pattern::contiguous && touch.mask == kAllLanes) {
    if (touch.mode == TouchMode::write) {
      return words == 1 ? write_run(view, word, kLanes, thread0, 0)
                        : write_run(view, word, words * kLanes, thread0, shift);
    }
    return words == 1 ? read_run(view, parts, word, kLanes, thread0, 0)
                      : read_run(view, parts, word, words * kLanes, thread0, shift);
  }
  if (touch.mode == TouchMode::write) return false;
  if (pattern == Pattern::uniform) {
    if ((touch.mask & (touch.mask - 1)) == 0) return false;
    return read_same(view, parts, word, words, thread0 + static_cast<std::uint32_t>(touch.first));
  }
  if (pattern == Pattern::half_uniform) {
    return read_same(view, parts, word, words, thread0) &&
           read_same(view, parts, word + half, words, thread0 + 16);
  }
  if (pattern == Pattern::half_contiguous) {
    return read_run(view, parts, word, words * 16, thread0, shift) &&
           read_run(view, parts, word + half, words * 16, thread0 + 16, shift);
  }
  return false;
}

/// One lane's words; false when it takes a closer look.
template <bool kGlobal>
[[gnu::always_inline]] inline bool race_lane(const CellView<kGlobal>& view, bool parts,
                                             const WarpTouch& touch, std::uint64_t word,
                                             std::uint32_t thread) {
  const Cell mine = view.stamp | thread;
  const std::uint32_t words = touch.bytes / 4;
  bool fine = true;
  for (std::uint32_t i = 0; i < words; ++i) {
    fine &= view.is_harmless(view.write[word + i], mine);
    const Cell read = view.read[word + i];
    if (touch.mode == TouchMode::read) {
      fine &= !parts || view.is_harmless(read, mine);
    } else {
      fine &= view.is_past(read) || ((read & kMany) == 0 && view.is_harmless(read, mine));
    }
  }
  if (!fine) return false;
  for (std::uint32_t i = 0; i < words; ++i) {
    if (touch.mode == TouchMode::read) {
      Cell& read = view.read[word + i];
      read = reader(view, read, mine);
    } else {
      view.write[word + i] = mine;
    }
  }
  return true;
}

/// The race check of an access within one stretch of cells. `at` is the first active lane's byte
/// within them, `base` its address in the space.
template <bool kGlobal>
void race(BlockCheck& check, Warp& warp, const CheckSite& site, const WarpTouch& touch,
          GlobalRegion* region, std::uint64_t at, std::uint64_t base) {
  const CellView<kGlobal> view =
      view_of<kGlobal>(check, *touch.info, kGlobal ? region->write : check.shared_write,
                       kGlobal ? region->read : check.shared_read);
  const std::uint32_t thread0 = warp.index * std::uint32_t{kLanes};
  const bool plain = touch.bytes >= 4 && !touch.info->strong && touch.info->site < kMostSites;
  const bool parts = check.parts || (kGlobal && check.scattered);
  if (plain && race_by_pattern(view, parts, static_cast<Pattern>(site.pattern),
                               half_words(site.offsets[16]), touch, at / 4, thread0))
    return;
  each_lane(site, touch, [&](int lane, std::uint64_t offset) {
    if (plain && race_lane(view, parts, touch, (at + offset) / 4,
                           thread0 + static_cast<std::uint32_t>(lane)))
      return;
    const LaneTouch one{touch.mode,    kGlobal ? Space::global : Space::shared,
                        base + offset, touch.bytes,
                        region,        touch.address};
    check.examine(touch.op, warp, lane, one);
  });
}

/// Finds the lanes that read what nobody wrote.
[[gnu::noinline]] void report_poison(BlockCheck& check, Warp& warp, const CheckSite& site,
                                     const WarpTouch& touch, Space space, std::uint64_t* map,
                                     std::uint64_t at, std::uint64_t base) {
  each_lane(site, touch, [&](int lane, std::uint64_t offset) {
    if (!any_poison(map, at + offset, touch.bytes)) return;
    check.report_uninitialised(touch.op, warp, lane,
                               {touch.mode, space, base + offset, touch.bytes, nullptr, nullptr});
  });
  each_lane(site, touch, [&](int, std::uint64_t offset) {  // say it once
    set_poison<false>(map, at + offset, touch.bytes);
  });
}

[[gnu::always_inline]] inline void init(BlockCheck& check, Warp& warp, const CheckSite& site,
                                        const WarpTouch& touch, Space space, std::uint64_t* map,
                                        std::uint64_t at, std::uint64_t base) {
  if (poisoned(site, touch, map, at)) [[unlikely]]
    report_poison(check, warp, site, touch, space, map, at, base);
}

/// Local memory lies lane by lane; only reads of wholly unwritten values count, since compilers
/// copy padding.
void init_local(BlockCheck& check, Warp& warp, const CheckSite& site, const WarpTouch& touch,
                std::uint64_t base) {
  const std::uint64_t lane0 = warp.index * std::uint64_t{kLanes} * warp.local_bytes;
  each_lane(site, touch, [&](int lane, std::uint64_t offset) {
    const std::uint64_t place =
        lane0 + static_cast<unsigned>(lane) * warp.local_bytes + base + offset;
    if (touch.mode != TouchMode::write) {
      const std::uint64_t bits = poison_bits(check.local_poison, place, touch.bytes);
      if (std::popcount(bits) == static_cast<int>(touch.bytes)) {
        check.report_uninitialised(
            touch.op, warp, lane,
            {touch.mode, Space::local, base + offset, touch.bytes, nullptr, nullptr});
      }
      if (bits == 0) return;
    }
    set_poison<false>(check.local_poison, place, touch.bytes);
  });
}

/// Lane by lane, through the windows of each address.
[[gnu::noinline]] void check_scattered(BlockCheck& check, Warp& warp, const WarpTouch& touch,
                                       Space space) {
  for (std::uint32_t m = touch.mask; m != 0; m &= m - 1) {
    const int lane = std::countr_zero(m);
    check.touch_lane(touch.op, warp, lane, touch.mode, touch.address[lane], touch.bytes, space);
  }
}

[[gnu::always_inline]] inline void check_global(BlockCheck& check, Warp& warp, CheckSite& site,
                                                const WarpTouch& touch, std::uint64_t base) {
  const std::uint64_t number = (base - site.low) >> kRegionShift;
  if (number != (base + site.high - 1) >> kRegionShift) [[unlikely]]
    return check_scattered(check, warp, touch, Space::global);
  if (number != site.region_number) {
    site.region = check.region(base);
    site.region_number = number;
  }
  GlobalRegion& region = *site.region;
  const std::uint64_t at = base % kRegionBytes;
  region.lock();
  if (region.poison != nullptr && check.init)
    init(check, warp, site, touch, Space::global, region.poison, at, base);
  if (check.race) race<true>(check, warp, site, touch, &region, at, base);
  region.unlock();
}

/// `space` is the instruction's; addresses in generic form are told apart here.
[[gnu::always_inline]] inline void check_access(BlockCheck& check, Warp& warp,
                                                const WarpTouch& touch, Space space) {
  CheckSite& site = check.sites[touch.info->site];
  if (!fits(site, touch)) replan(site, touch);
  std::uint64_t base = touch.address[touch.first];
  if (!site.aligned || (base & (touch.bytes - 1)) != 0) return;  // the access itself will fault
  if (space == Space::generic) {
    const std::uint64_t window = base & kWindowMask;
    if (((base + site.high - 1) & kWindowMask) != window ||
        ((base - site.low) & kWindowMask) != window)
      return check_scattered(check, warp, touch, space);
    space = window == kSharedWindow  ? Space::shared
            : window == kLocalWindow ? Space::local
            : window == kParamWindow ? Space::param
                                     : Space::global;
    if (space != Space::global) base &= ~kWindowMask;
  }
  if (space == Space::global) return check_global(check, warp, site, touch, base);
  const bool is_shared = space == Space::shared;
  const std::uint64_t limit = is_shared ? warp.shared_bytes : warp.local_bytes;
  if (base < site.low || base >= limit || site.high > limit - base) return;
  if (is_shared) {
    if (check.init) init(check, warp, site, touch, space, check.shared_poison, base, base);
    if (check.race) race<false>(check, warp, site, touch, nullptr, base, base);
  } else if (space == Space::local && check.init) {
    init_local(check, warp, site, touch, base);
  }
}

template <bool kMasked>
[[gnu::always_inline]] inline WarpTouch touch_of(const Op* op, const Warp& warp,
                                                 const CheckedOp& info, TouchMode mode,
                                                 const std::uint64_t* address) {
  const std::uint32_t mask = kMasked ? warp.mask : kAllLanes;
  return {op, &info, mode, mask, info.bytes, kMasked ? std::countr_zero(mask) : 0, address};
}

/// An access to shared memory whose pattern the op's own plan knows. False: look closer.
[[gnu::always_inline]] inline bool check_fixed(BlockCheck& check, const Warp& warp, const Op* op,
                                               const CheckedOp& info, TouchMode mode) {
  const auto& plan = *reinterpret_cast<const FixedPlan*>(warp.frame + op->e);
  const auto pattern = static_cast<Pattern>(plan.pattern);
  const std::uint64_t bytes = info.bytes;
  if (pattern == Pattern::none || pattern == Pattern::gather) return false;
  const auto half = static_cast<std::uint64_t>(static_cast<std::int64_t>(plan.half));
  if (check.init) {
    const bool halves = pattern == Pattern::half_uniform || pattern == Pattern::half_contiguous;
    const bool runs = pattern == Pattern::contiguous || pattern == Pattern::half_contiguous;
    const std::uint64_t run = runs ? bytes * (halves ? kLanes / 2 : kLanes) : bytes;
    if (mode == TouchMode::write) {
      set_poison<false>(check.shared_poison, plan.base, run);
      if (halves) set_poison<false>(check.shared_poison, plan.base + half, run);
    } else {
      if (any_poison(check.shared_poison, plan.base, run)) return false;
      if (halves && any_poison(check.shared_poison, plan.base + half, run)) return false;
    }
  }
  if (!check.race) return true;
  const CellView<false> view = view_of<false>(check, info, check.shared_write, check.shared_read);
  const WarpTouch touch{op, &info, mode, kAllLanes, info.bytes, 0, nullptr};
  const bool plain = bytes >= 4 && info.site < kMostSites;
  return plain && race_by_pattern(view, check.parts, pattern, half_words(half), touch,
                                  plan.base / 4, warp.index * std::uint32_t{kLanes});
}

template <bool kMasked>
[[gnu::always_inline]] inline const Op* transfer(const Op* op, Warp& warp, BlockCheck& check,
                                                 const CheckedOp& info, TouchMode mode) {
  if (!kMasked && info.fixed && check_fixed(check, warp, op, info, mode))
    return info.full(op, warp);
  alignas(64) std::uint64_t address[kLanes];
  lane_addresses(op, warp, address);
  const Space space = space_of(op);
  check_access(check, warp, touch_of<kMasked>(op, warp, info, mode, address), space);
  const OpFn run = kMasked ? info.masked : info.full;
  if (!info.strong || !check.parts || !check.race) [[likely]] {
    return run(op, warp);
  }
  const bool is_shared = space == Space::shared ||
                         (space == Space::generic &&
                          (address[std::countr_zero(warp.mask)] & kWindowMask) == kSharedWindow);
  const Space where = is_shared ? Space::shared : Space::global;
  if (mode != TouchMode::read) check.publish(warp, address, where, info.release);
  const Op* const next = run(op, warp);
  if (next != nullptr && mode != TouchMode::write)
    check.observe(warp, address, where, info.acquire);
  return next;
}

/// Rows of 16 bytes in shared memory, one for each of the first lanes.
template <bool kMasked>
void check_tiles(const Op* op, Warp& warp, BlockCheck& check, const CheckedOp& info,
                 TouchMode mode) {
  alignas(64) std::uint64_t address[kLanes];
  lane_addresses(op, warp, address);
  WarpTouch touch = touch_of<kMasked>(op, warp, info, mode, address);
  const std::uint32_t rows = info.tiles * 8u;
  if (rows < 32) touch.mask &= (1u << rows) - 1;
  if (touch.mask != 0) check_scattered(check, warp, touch, space_of(op));
}

/// cp.async counts as done where it stands, in the lane's name.
void check_copies(const Op* op, Warp& warp, BlockCheck& check) {
  const std::uint32_t size = warp.reg<std::uint32_t>(op->c)[0];
  const std::uint32_t ignored = (op->flags & kCopyIgnores) != 0 ? warp.pred(op->e) : 0;
  const std::uint32_t* const sizes =
      (op->flags & kCopyHasSize) != 0 ? warp.reg<std::uint32_t>(op->e) : nullptr;
  for (std::uint32_t m = warp.mask; m != 0; m &= m - 1) {
    const int lane = std::countr_zero(m);
    const auto to = copy_address(warp, op->a, (op->flags & kCopyTarget32) != 0, op->imm, lane);
    const auto from = copy_address(warp, op->b, (op->flags & kCopySource32) != 0, op->imm2, lane);
    std::uint32_t bytes = sizes != nullptr && sizes[lane] < size ? sizes[lane] : size;
    if ((ignored >> lane & 1) != 0) bytes = 0;
    check.touch_lane(op, warp, lane, TouchMode::read, from, bytes, Space::global);
    check.touch_lane(op, warp, lane, TouchMode::write, to, size, Space::shared);
  }
}

const Op* check_mbarrier(const Op* op, Warp& warp, BlockCheck& check, OpFn run) {
  alignas(64) std::uint64_t address[kLanes];
  lane_addresses(op, warp, address);
  return check.mbarrier(op, warp, address, run);
}

template <bool kMasked>
const Op* checked(const Op* op, Warp& warp) {
  BlockCheck& check = *warp.worker->check;
  const CheckedOp& info = check.ops[warp.op_index(op)];
  const OpFn run = kMasked ? info.masked : info.full;
  const Op* next = nullptr;
  if (check.pauses && !info.guarded && info.bytes != 0 && check.pause(op, warp)) return nullptr;
  check.inside = true;
  switch (info.kind) {
    case CheckKind::load:
      next = transfer<kMasked>(op, warp, check, info, TouchMode::read);
      break;
    case CheckKind::store:
      next = transfer<kMasked>(op, warp, check, info, TouchMode::write);
      break;
    case CheckKind::atomic:
      next = transfer<kMasked>(op, warp, check, info, TouchMode::atomic);
      break;
    case CheckKind::tile_load:
    case CheckKind::tile_store:
      check_tiles<kMasked>(op, warp, check, info,
                           info.kind == CheckKind::tile_load ? TouchMode::read : TouchMode::write);
      next = run(op, warp);
      break;
    case CheckKind::copy:
      check_copies(op, warp, check);
      next = run(op, warp);
      break;
    case CheckKind::fence:
      check.fence(warp);
      next = run(op, warp);
      break;
    case CheckKind::meeting: {
      const std::uint32_t operand[] = {op->a, op->b, op->c, op->e, op->f};
      alignas(64) std::uint32_t members[kLanes];
      std::memcpy(members, warp.reg<std::uint32_t>(operand[info.operand]), sizeof members);
      next = run(op, warp);
      if (next != nullptr) check.meet(op, warp, members);
      break;
    }
    case CheckKind::meeting_of_all:
      next = run(op, warp);
      if (next != nullptr) check.meet(op, warp, nullptr);
      break;
    case CheckKind::mbarrier:
      next = check_mbarrier(op, warp, check, run);
      break;
    case CheckKind::parameters:
      next = run(op, warp);
      check.note_parameters(op, warp);
      break;
    case CheckKind::none:
      next = run(op, warp);
      break;
  }
  check.inside = false;
  return next;
}

}  // namespace

CheckedHandlers checked_handlers() { return {checked<false>, checked<true>}; }

}  // namespace kernwright::sim::KW_SIM_NS
