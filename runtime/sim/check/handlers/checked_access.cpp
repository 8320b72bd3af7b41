// The handler before every checked op: checks the shadows of the access, then runs the program's
// op.
#include "sim/check/handlers/checked_fixed.h"
#include "sim/check/handlers/checked_init.h"
#include "sim/check/handlers/checked_order.h"
#include "sim/check/handlers/checked_race.h"
#include "sim/check/handlers/checked_run.h"
#include "sim/check/handlers/checked_scatter.h"
#include "sim/code/fast_handlers.h"
#include "sim/exec/block/cluster.h"
#include "sim/ops/memory/memory_elements.h"

#include <bit>

namespace kernwright::sim::KW_SIM_NS {

CheckedHandlers checked_handlers();

namespace {

using ptx::Space;

/// Local memory lies lane by lane; only reads of wholly unwritten values are findings, since
/// compilers copy padding.
void init_local(BlockCheck& check, Warp& warp, const CheckSite& site, const WarpTouch& touch,
                std::uint64_t base) {
  const std::uint64_t lane0 = warp.index * std::uint64_t{kLanes} * warp.local_bytes;
  each_lane(site, touch, [&](int lane, std::uint64_t offset) {
    const std::uint64_t place =
        lane0 + static_cast<unsigned>(lane) * warp.local_bytes + base + offset;
    if (touch.mode != AccessKind::write) {
      const std::uint64_t bits = poison_bits(check.unwritten.local, place, touch.bytes);
      if (bits == 0) return;
      const bool is_whole = std::popcount(bits) == static_cast<int>(touch.bytes);
      if (is_whole || touch.info->waits) {
        const std::uint64_t said = check.unwritten.judge(
            touch.op, warp, lane, {touch.mode, Space::local, base + offset, touch.bytes});
        if (touch.mode == AccessKind::read) return clear_poison(check.unwritten.local, place, said);
      }
    }
    set_poison<false>(check.unwritten.local, place, touch.bytes);
  });
}

constexpr std::uint64_t kRankedAddress = std::uint64_t{1} << kRankShift;

/// Lane by lane, through the windows of each address.
[[gnu::noinline]] void check_scattered(BlockCheck& check, Warp& warp, const WarpTouch& touch,
                                       Space space) {
  for (std::uint32_t m = touch.mask; m != 0; m &= m - 1) {
    const int lane = std::countr_zero(m);
    check.lanes.touch(touch.op, warp, lane, touch.mode, touch.address[lane], touch.bytes, space);
  }
}

/// An access of lanes with all bytes in one region. The site's offsets count from `at` in the
/// region; `base` is the address there.
[[gnu::always_inline]] inline void check_region(BlockCheck& check, Warp& warp,
                                                const CheckSite& site, const WarpTouch& touch,
                                                GlobalRegion& region, std::uint64_t base,
                                                std::uint64_t at) {
  if (!check.alone) region.lock();
  if (touch.mode != AccessKind::write || touch.pattern != Pattern::gather) {
    region.end_scatter(check.order.launch_floor);
  }
  std::uint64_t* const poison = check.init ? region.poison.load() : nullptr;
  if (poison != nullptr) init(check, warp, site, touch, Space::global, poison, at, base);
  if (check.race) race<true>(check, warp, site, touch, &region, at, base);
  if (!check.alone) region.unlock();
}

/// Region by region. Aligned accesses lie in one each.
[[gnu::noinline]] void check_regions(BlockCheck& check, Warp& warp, const CheckSite& site,
                                     const WarpTouch& touch, std::uint64_t base) {
  WarpTouch part = touch;
  part.pattern = Pattern::gather;
  for (std::uint32_t rest = touch.mask; rest != 0; rest &= ~part.mask) {
    part.first = std::countr_zero(rest);
    const std::uint64_t number = touch.address[part.first] >> kRegionShift;
    std::uint32_t here = 0;
    for (std::uint32_t i = 0; i < kLanes; ++i) {
      here |= (touch.address[i] >> kRegionShift == number ? 1u : 0u) << i;
    }
    part.mask = rest & here;
    check_region(check, warp, site, part, *check.regions.at(number << kRegionShift), base,
                 base - (number << kRegionShift));
  }
}

[[gnu::always_inline]] inline void check_global(BlockCheck& check, Warp& warp, CheckSite& site,
                                                const WarpTouch& touch, std::uint64_t base) {
  if (scatters(check, site, touch, base) && scatter(check, warp, site, touch, base)) return;
  const std::uint64_t number = (base - site.low) >> kRegionShift;
  if (number != (base + site.high - 1) >> kRegionShift) [[unlikely]]
    return check_regions(check, warp, site, touch, base);
  if (number != site.region_number) {
    site.region = check.regions.at(base);
    site.region_number = number;
  }
  check_region(check, warp, site, touch, *site.region, base, base % kRegionBytes);
}

/// `space` is the instruction's; addresses in generic form are told apart here.
[[gnu::noinline]] void check_access(BlockCheck& check, Warp& warp, WarpTouch& touch, Space space) {
  CheckSite& site = check.sites[touch.info->site];
  if (!fits(site, touch)) {
    replan(site, touch);
    site.tag = check.sites.new_tag();
  } else if (site.apart == Apart::unknown && touch.bytes == 4) {
    find_apart(site, touch);
  }
  touch.pattern = static_cast<Pattern>(site.pattern);
  const Space given = space;
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
  // Shared memory of other blocks, or with the block's own rank in front.
  if ((space == Space::shared || space == Space::cluster) &&
      (base - site.low >= kRankedAddress || base + site.high > kRankedAddress)) [[unlikely]]
    return check_scattered(check, warp, touch, given);
  if (space == Space::cluster) space = Space::shared;
  if (space == Space::global) return check_global(check, warp, site, touch, base);
  const bool is_shared = space == Space::shared;
  const std::uint64_t limit = is_shared ? warp.shared_bytes : warp.local_bytes;
  if (base < site.low || base >= limit || site.high > limit - base) return;
  if (is_shared) {
    if (check.init) init(check, warp, site, touch, space, check.unwritten.shared, base, base);
    if (check.race) race<false>(check, warp, site, touch, nullptr, base, base);
  } else if (space == Space::local && check.init) {
    init_local(check, warp, site, touch, base);
  }
}

template <bool kMasked>
[[gnu::always_inline]] inline WarpTouch make_touch(const Op* op, const Warp& warp,
                                                   const CheckedOp& info, AccessKind mode,
                                                   const std::uint64_t* address) {
  const std::uint32_t mask = kMasked ? warp.mask : kAllLanes;
  return {op, &info, mode, mask, info.bytes, kMasked ? std::countr_zero(mask) : 0, address};
}

/// One copy for all modes.
template <bool kMasked>
[[gnu::noinline]] const Op* transfer(const Op* op, Warp& warp, BlockCheck& check,
                                     const CheckedOp& info, AccessKind mode) {
  if (!kMasked && info.fixed && check_fixed(check, warp, op, info, mode))
    return info.full(op, warp);
  alignas(64) std::uint64_t address[kLanes];
  lane_addresses(op, warp, address);
  const Space space = op_space(op);
  WarpTouch touch = make_touch<kMasked>(op, warp, info, mode, address);
  check_access(check, warp, touch, space);
  if (!kMasked && info.fixed) note_gather(check, warp, op, info);
  const OpFn run = kMasked ? info.masked : info.full;
  if (!info.strong || !check.parts || !check.race) [[likely]] {
    return run(op, warp);
  }
  const bool is_shared = space == Space::shared || space == Space::cluster ||
                         (space == Space::generic &&
                          (address[std::countr_zero(warp.mask)] & kWindowMask) == kSharedWindow);
  const Space where = is_shared ? Space::shared : Space::global;
  if (mode != AccessKind::read) {
    if (info.release) check.new_tick();
    check.order.publish(warp, address, where, info);
  }
  const Op* const next = run(op, warp);
  if (next != nullptr && mode != AccessKind::write) check.order.observe(warp, address, where, info);
  return next;
}

/// Rows of 16 bytes in shared memory, one for each of the first lanes.
template <bool kMasked>
void check_tiles(const Op* op, Warp& warp, BlockCheck& check, const CheckedOp& info,
                 AccessKind mode) {
  alignas(64) std::uint64_t address[kLanes];
  lane_addresses(op, warp, address);
  WarpTouch touch = make_touch<kMasked>(op, warp, info, mode, address);
  const std::uint32_t rows = info.tiles * 8u;
  if (rows < 32) touch.mask &= (1u << rows) - 1;
  if (touch.mask == 0) return;
  touch.first = std::countr_zero(touch.mask);
  check_access(check, warp, touch, op_space(op));
}

template <bool kMasked>
[[gnu::always_inline]] inline const Op* checked_load(const Op* op, Warp& warp, BlockCheck& check,
                                                     const CheckedOp& info) {
  if (info.used == 0) return transfer<kMasked>(op, warp, check, info, AccessKind::read);
  alignas(64) std::uint64_t address[kLanes];
  lane_addresses(op, warp, address);
  check.lanes.touch_used(op, warp, info, address, op_space(op));
  return (kMasked ? info.masked : info.full)(op, warp);
}

/// A load that lanes may drop: the race check waits for lanes that keep it.
template <bool kMasked>
[[gnu::noinline]] const Op* checked_early(const Op* op, Warp& warp, BlockCheck& check,
                                          const CheckedOp& info) {
  alignas(64) std::uint64_t address[kLanes];
  lane_addresses(op, warp, address);
  check.loads.note(op, warp, info, address, op_space(op));
  check.race = false;
  const Op* const next = checked_load<kMasked>(op, warp, check, info);
  check.race = true;
  return next;
}

/// Reports uses of loaded values, before the op that uses them.
[[gnu::noinline]] void report_uses(const Op* op, Warp& warp, BlockCheck& check,
                                   const CheckedOp& info) {
  if (info.uses) {
    alignas(64) std::uint64_t address[kLanes];
    if (info.kind == CheckKind::store) lane_addresses(op, warp, address);
    check.unwritten.settle_loads(op, warp, op_space(op), address);
  }
  if (info.flows) check.lost.follow(op, warp);
  if (info.waits) check.unwritten.forget_loads(op, warp);
}

template <bool kMasked>
[[gnu::always_inline]] inline const Op* run_checked(const Op* op, Warp& warp, BlockCheck& check,
                                                    const CheckedOp& info, OpFn run) {
  switch (info.kind) {
    case CheckKind::load:
      if (info.speculated != 0 && check.race) [[unlikely]]
        return checked_early<kMasked>(op, warp, check, info);
      return checked_load<kMasked>(op, warp, check, info);
    case CheckKind::store: {
      const Op* const next = transfer<kMasked>(op, warp, check, info, AccessKind::write);
      if (check.unwritten.has_copies()) [[unlikely]]
        check.unwritten.end_copies(warp);
      return next;
    }
    case CheckKind::atomic: return transfer<kMasked>(op, warp, check, info, AccessKind::atomic);
    case CheckKind::tile_load:
      check_tiles<kMasked>(op, warp, check, info, AccessKind::read);
      return run(op, warp);
    case CheckKind::tile_store:
      check_tiles<kMasked>(op, warp, check, info, AccessKind::write);
      return run(op, warp);
    case CheckKind::meeting: return checked_meeting(op, warp, check, info, run);
    case CheckKind::shuffle: return checked_shuffle(op, warp, check, info, run);
    case CheckKind::full_meeting: {
      const Op* const next = run(op, warp);
      if (next != nullptr) check.meet(op, warp, nullptr);
      return next;
    }
    case CheckKind::mbarrier: return check_mbarrier(op, warp, check, run);
    case CheckKind::bulk:
    case CheckKind::self_checked:
    case CheckKind::use:
    case CheckKind::none: return run(op, warp);
    default: return checked_other(op, warp, check, info, run);
  }
}

template <bool kMasked>
const Op* checked(const Op* op, Warp& warp) {
  BlockCheck& check = BlockCheck::get(warp);
  const CheckedOp& info = check.ops[warp.op_index(op)];
  if (check.slow.pauses() && !info.guarded && info.bytes != 0 && check.schedule.pause(op, warp))
    return nullptr;
  check.inside = true;
  if (check.slow.follows()) [[unlikely]]
    report_uses(op, warp, check, info);
  if (check.loads.any && info.takes) [[unlikely]]
    check.loads.take(op, warp);
  const Op* const next =
      run_checked<kMasked>(op, warp, check, info, kMasked ? info.masked : info.full);
  check.inside = false;
  return next;
}

const Op* checked_fixed_load(const Op* op, Warp& warp);

[[gnu::noinline]] const Op* begin_moment(const Op* op, Warp& warp) {
  BlockCheck& check = BlockCheck::get(warp);
  make_room(check, check.order.met(warp.index));
  return checked_fixed_load(op, warp);
}

/// A load with a plan already checked in this block: its bytes are written, and without new writes
/// to shared memory there is nothing to compare. It only makes tail calls, so it saves no
/// registers.
const Op* checked_fixed_load(const Op* op, Warp& warp) {
  BlockCheck& check = BlockCheck::get(warp);
  const CheckedOp& info = check.ops[warp.op_index(op)];
  auto& plan = *reinterpret_cast<FixedPlan*>(warp.frame + op->e);
  const std::uint32_t epoch = check.shared.read_epoch;
  if (epoch == 0 || check.slow.any() || plan.epoch < check.shared.block_epoch)
    return checked<false>(op, warp);
  if (plan.epoch != epoch) {
    const auto pattern = static_cast<Pattern>(plan.pattern);
    if (!check.race || !check.shared.written.none() || pattern == Pattern::gather)
      return checked<false>(op, warp);
    if (!check.shared.late.goes_on(check.order.stamp, check.order.met(warp.index)))
      return begin_moment(op, warp);
    list_read(check.shared.late, warp.index, info, kAllLanes, pattern, plan.base, plan.half);
    plan.epoch = epoch;
  }
  return info.full(op, warp);
}

/// A load or store of global memory with neighbouring lanes, at least within each half, by the
/// access's own plan.
template <AccessKind kMode>
const Op* checked_global(const Op* op, Warp& warp) {
  BlockCheck& check = BlockCheck::get(warp);
  const CheckedOp& info = check.ops[warp.op_index(op)];
  const MemorySite& site = warp.worker->sites.data()[op->site];
  const auto pattern = static_cast<Pattern>(site.pattern);
  const bool halves = pattern == Pattern::half_contiguous;
  const bool runs = (halves || pattern == Pattern::contiguous) && (op->flags & kAddress32) == 0 &&
                    !check.slow.any();
  if (runs && plan<false, Form::global>(op, warp, site, info.bytes) != nullptr) {
    const std::uint64_t base =
        warp.reg<std::uint64_t>(op->a)[0] + static_cast<std::uint64_t>(op->imm);
    if (halves ? check_halves<kMode>(check, warp, info, base, site.half)
               : check_run<kMode>(check, warp, info, base))
      return info.full(op, warp);
  }
  return checked<false>(op, warp);
}

/// The same with the address in one step, as indexed_handler() has it.
template <AccessKind kMode>
const Op* checked_indexed(const Op* op, Warp& warp) {
  BlockCheck& check = BlockCheck::get(warp);
  const std::uint32_t index = warp.op_index(op);
  const CheckedOp& access = check.ops[index + 1];
  const MemorySite& site = warp.worker->sites.data()[op[1].site];
  std::uint64_t base = 0;
  if (!check.slow.any() && find_elements(op, warp, site, access.bytes, base) &&
      check_run<kMode>(check, warp, access, base))
    return check.ops[index].full(op, warp);
  return handler_alone(*op)(op, warp);
}

}  // namespace

CheckedHandlers checked_handlers() {
  return {checked<false>,
          checked<true>,
          checked_fixed_load,
          checked_global<AccessKind::read>,
          checked_global<AccessKind::write>,
          checked_indexed<AccessKind::read>,
          checked_indexed<AccessKind::write>};
}

}  // namespace kernwright::sim::KW_SIM_NS
