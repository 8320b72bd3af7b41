// The op in front of every checked one: looks at the shadow of what the access touches, then does
// what the program says.
#include "sim/check/handlers/checked_fixed.h"
#include "sim/check/handlers/checked_init.h"
#include "sim/check/handlers/checked_race.h"
#include "sim/check/handlers/checked_run.h"
#include "sim/check/handlers/checked_scatter.h"
#include "sim/code/fast_handlers.h"
#include "sim/exec/cluster.h"
#include "sim/ops/async_copy.h"
#include "sim/ops/memory_elements.h"
#include "sim/ops/shuffle_lane.h"

#include <bit>

namespace kernwright::sim::KW_SIM_NS {

CheckedHandlers checked_handlers();

namespace {

using ptx::ShflMode;
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
      const std::uint64_t bits = poison_bits(check.local_poison, place, touch.bytes);
      if (bits == 0) return;
      const bool is_whole = std::popcount(bits) == static_cast<int>(touch.bytes);
      if (is_whole || touch.info->waits) {
        const std::uint64_t said = check.judge_uninitialised(
            touch.op, warp, lane,
            {touch.mode, Space::local, base + offset, touch.bytes, nullptr, nullptr});
        if (touch.mode == AccessKind::read) return clear_poison(check.local_poison, place, said);
      }
    }
    set_poison<false>(check.local_poison, place, touch.bytes);
  });
}

constexpr std::uint64_t kRankedAddress = std::uint64_t{1} << kRankShift;

/// Lane by lane, through the windows of each address.
[[gnu::noinline]] void check_scattered(BlockCheck& check, Warp& warp, const WarpTouch& touch,
                                       Space space) {
  for (std::uint32_t m = touch.mask; m != 0; m &= m - 1) {
    const int lane = std::countr_zero(m);
    check.touch_lane(touch.op, warp, lane, touch.mode, touch.address[lane], touch.bytes, space);
  }
}

/// An access of lanes whose bytes lie in one region. `at` is what the site's offsets count from in
/// there, `base` the address of that.
[[gnu::always_inline]] inline void check_region(BlockCheck& check, Warp& warp,
                                                const CheckSite& site, const WarpTouch& touch,
                                                GlobalRegion& region, std::uint64_t base,
                                                std::uint64_t at) {
  if (!check.alone) region.lock();
  if (touch.mode != AccessKind::write || touch.pattern != Pattern::gather) {
    region.end_scatter(check.launch_floor);
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
    check_region(check, warp, site, part, *check.region(number << kRegionShift), base,
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
    site.region = check.region(base);
    site.region_number = number;
  }
  check_region(check, warp, site, touch, *site.region, base, base % kRegionBytes);
}

/// `space` is the instruction's; addresses in generic form are told apart here.
[[gnu::noinline]] void check_access(BlockCheck& check, Warp& warp, WarpTouch& touch, Space space) {
  CheckSite& site = check.sites[touch.info->site];
  if (!fits(site, touch)) {
    replan(site, touch);
    site.tag = check.new_tag();
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
    if (check.init) init(check, warp, site, touch, space, check.shared_poison, base, base);
    if (check.race) race<false>(check, warp, site, touch, nullptr, base, base);
  } else if (space == Space::local && check.init) {
    init_local(check, warp, site, touch, base);
  }
}

template <bool kMasked>
[[gnu::always_inline]] inline WarpTouch touch_of(const Op* op, const Warp& warp,
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
  const Space space = space_of(op);
  WarpTouch touch = touch_of<kMasked>(op, warp, info, mode, address);
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
  if (mode != AccessKind::read) check.publish(warp, address, where, info);
  const Op* const next = run(op, warp);
  if (next != nullptr && mode != AccessKind::write) check.observe(warp, address, where, info);
  return next;
}

/// Rows of 16 bytes in shared memory, one for each of the first lanes.
template <bool kMasked>
void check_tiles(const Op* op, Warp& warp, BlockCheck& check, const CheckedOp& info,
                 AccessKind mode) {
  alignas(64) std::uint64_t address[kLanes];
  lane_addresses(op, warp, address);
  WarpTouch touch = touch_of<kMasked>(op, warp, info, mode, address);
  const std::uint32_t rows = info.tiles * 8u;
  if (rows < 32) touch.mask &= (1u << rows) - 1;
  if (touch.mask == 0) return;
  touch.first = std::countr_zero(touch.mask);
  check_access(check, warp, touch, space_of(op));
}

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
    check.copy(op, warp, lane, {.to = to, .from = from, .bytes = size, .source = bytes});
  }
}

void check_copy_wait(const Op* op, Warp& warp, BlockCheck& check, const CheckedOp& info) {
  const bool all = info.waits_for_all;
  const std::size_t left = all ? 0 : warp.reg<std::uint32_t>(op->a)[std::countr_zero(warp.mask)];
  check.wait_for_copies(warp, left, all);
}

const Op* check_mbarrier(const Op* op, Warp& warp, BlockCheck& check, OpFn run) {
  alignas(64) std::uint64_t address[kLanes];
  lane_addresses(op, warp, address);
  return check.mbarrier(op, warp, address, run);
}

template <ShflMode kMode>
void read_sources(const Op* op, const Warp& warp, ShuffleSources& read) {
  const auto *b = warp.reg<std::int32_t>(op->b), *c = warp.reg<std::int32_t>(op->c);
  KW_LANES for (int i = 0; i < kLanes; ++i) {
    const std::int32_t from = source_lane<kMode>(i, b[i], c[i]);
    read.from[static_cast<std::size_t>(i)] = from < 0 ? i : from;
  }
}

/// To be called before the shuffle, whose result may be one of its operands.
void read_sources(const Op* op, const Warp& warp, ShflMode mode, ShuffleSources& read) {
  std::memcpy(read.members.data(), warp.reg<std::uint32_t>(op->e), sizeof read.members);
  if (mode == ShflMode::up) return read_sources<ShflMode::up>(op, warp, read);
  if (mode == ShflMode::down) return read_sources<ShflMode::down>(op, warp, read);
  if (mode == ShflMode::bfly) return read_sources<ShflMode::bfly>(op, warp, read);
  read_sources<ShflMode::idx>(op, warp, read);
}

/// To be called behind it, when the active lanes are those that took part.
void find_lost_sources(const Warp& warp, ShuffleSources& read) {
  alignas(64) std::int32_t lost[kLanes];
  KW_LANES for (int i = 0; i < kLanes; ++i) {
    const auto lane = static_cast<std::size_t>(i);
    const std::uint32_t there = (read.members[lane] | 1u << i) & warp.mask;
    lost[i] = (there >> read.from[lane] & 1) != 0 ? 0 : -1;
  }
  read.lost = pack_mask(lost) & warp.mask;
}

/// A load that lanes may drop: the race check waits for those that do not.
template <bool kMasked>
[[gnu::noinline]] const Op* checked_early(const Op* op, Warp& warp, BlockCheck& check,
                                          const CheckedOp& info) {
  alignas(64) std::uint64_t address[kLanes];
  lane_addresses(op, warp, address);
  check.speculate(op, warp, info, address, space_of(op));
  check.race = false;
  const Op* next = nullptr;
  if (info.used != 0) {
    check.touch_used(op, warp, info, address, space_of(op));
    next = (kMasked ? info.masked : info.full)(op, warp);
  } else {
    next = transfer<kMasked>(op, warp, check, info, AccessKind::read);
  }
  check.race = true;
  return next;
}

template <bool kMasked>
const Op* checked(const Op* op, Warp& warp) {
  BlockCheck& check = BlockCheck::of(warp);
  const CheckedOp& info = check.ops[warp.op_index(op)];
  const OpFn run = kMasked ? info.masked : info.full;
  const Op* next = nullptr;
  if (check.pauses && !info.guarded && info.bytes != 0 && check.pause(op, warp)) return nullptr;
  check.inside = true;
  if (check.in_doubt) [[unlikely]] {
    if (info.uses) {
      alignas(64) std::uint64_t address[kLanes];
      if (info.kind == CheckKind::store) lane_addresses(op, warp, address);
      check.settle_doubts(op, warp, space_of(op), address);
    }
    if (info.flows) check.follow_shuffles(op, warp);
    if (info.waits) check.forget_doubts(op, warp);
  }
  if (check.speculating && info.takes) [[unlikely]]
    check.take_loads(op, warp);
  switch (info.kind) {
    case CheckKind::load:
      if (info.speculated != 0 && check.race) [[unlikely]] {
        next = checked_early<kMasked>(op, warp, check, info);
        break;
      }
      if (info.used != 0) {
        alignas(64) std::uint64_t address[kLanes];
        lane_addresses(op, warp, address);
        check.touch_used(op, warp, info, address, space_of(op));
        next = run(op, warp);
        break;
      }
      next = transfer<kMasked>(op, warp, check, info, AccessKind::read);
      break;
    case CheckKind::store:
      next = transfer<kMasked>(op, warp, check, info, AccessKind::write);
      if (check.has_copies()) [[unlikely]]
        check.end_copies(warp);
      break;
    case CheckKind::atomic:
      next = transfer<kMasked>(op, warp, check, info, AccessKind::atomic);
      break;
    case CheckKind::tile_load:
    case CheckKind::tile_store:
      check_tiles<kMasked>(
          op, warp, check, info,
          info.kind == CheckKind::tile_load ? AccessKind::read : AccessKind::write);
      next = run(op, warp);
      break;
    case CheckKind::copy:
      check_copies(op, warp, check);
      next = run(op, warp);
      break;
    case CheckKind::copy_group:
      check.end_group(warp);
      next = run(op, warp);
      break;
    case CheckKind::copy_wait:
      check_copy_wait(op, warp, check, info);
      next = run(op, warp);
      break;
    case CheckKind::fence:
      check.fence(warp, info.reach);
      next = run(op, warp);
      break;
    case CheckKind::meeting: {
      const std::uint32_t operand[] = {op->a, op->b};
      alignas(64) std::uint32_t members[kLanes];
      std::memcpy(members, warp.reg<std::uint32_t>(operand[info.operand]), sizeof members);
      next = run(op, warp);
      if (next != nullptr) check.meet(op, warp, members);
      break;
    }
    case CheckKind::shuffle: {
      ShuffleSources read;
      if (check.sync) read_sources(op, warp, info.shuffle, read);
      next = run(op, warp);
      if (next == nullptr) break;
      check.meet(op, warp, check.sync ? read.members.data() : nullptr);
      if (!check.sync) break;
      find_lost_sources(warp, read);
      if (read.lost != 0 || check.in_doubt) [[unlikely]]
        check.shuffle(op, warp, read);
      break;
    }
    case CheckKind::meeting_of_all:
      next = run(op, warp);
      if (next != nullptr) check.meet(op, warp, nullptr);
      break;
    case CheckKind::mbarrier:
      next = check_mbarrier(op, warp, check, run);
      break;
    case CheckKind::bulk:
    case CheckKind::own:
      next = run(op, warp);
      break;
    case CheckKind::bulk_group:
      check.end_bulk_group(warp);
      next = run(op, warp);
      break;
    case CheckKind::bulk_wait:
      next = run(op, warp);
      if (next == nullptr) break;
      check.wait_for_stores(warp, warp.reg<std::uint32_t>(op->a)[std::countr_zero(warp.mask)],
                            info.reads_only);
      break;
    case CheckKind::proxy_fence:
      check.fence_proxy(warp);
      next = run(op, warp);
      break;
    case CheckKind::map_fence:
      check.fence_maps(op, warp);
      next = run(op, warp);
      break;
    case CheckKind::wgmma:
      next = run(op, warp);  // none while other lanes of the warp are elsewhere
      if (next != nullptr) check.wgmma(op, warp);
      break;
    case CheckKind::wgmma_group:
      next = run(op, warp);
      if (next != nullptr) check.end_wgmma_group(warp);
      break;
    case CheckKind::wgmma_wait:
      next = run(op, warp);  // none while other warps of the warpgroup are behind
      if (next == nullptr) break;
      check.wait_for_wgmma(warp, warp.reg<std::uint32_t>(op->a)[std::countr_zero(warp.mask)]);
      break;
    case CheckKind::cluster_arrive:
      check.arrive_at_cluster(warp, info.release);
      next = run(op, warp);
      break;
    case CheckKind::parameters:
      next = run(op, warp);
      check.note_parameters(op, warp);
      break;
    case CheckKind::use:
    case CheckKind::none:
      next = run(op, warp);
      break;
  }
  check.inside = false;
  return next;
}

const Op* checked_fixed_load(const Op* op, Warp& warp);

[[gnu::noinline]] const Op* begin_moment(const Op* op, Warp& warp) {
  BlockCheck& check = BlockCheck::of(warp);
  make_room(check, check.met(warp.index));
  return checked_fixed_load(op, warp);
}

/// A load whose plan was looked at in this block: its bytes are written, and while nobody writes to
/// shared memory there is nothing to compare. Calls nobody who comes back: it saves no registers.
const Op* checked_fixed_load(const Op* op, Warp& warp) {
  BlockCheck& check = BlockCheck::of(warp);
  const CheckedOp& info = check.ops[warp.op_index(op)];
  auto& plan = *reinterpret_cast<FixedPlan*>(warp.frame + op->e);
  const std::uint32_t epoch = check.read_epoch;
  if (epoch == 0 || check.careful || plan.epoch < check.block_epoch)
    return checked<false>(op, warp);
  if (plan.epoch != epoch) {
    const auto pattern = static_cast<Pattern>(plan.pattern);
    if (!check.race || !check.written.none() || pattern == Pattern::gather)
      return checked<false>(op, warp);
    if (!check.late.goes_on(check.stamp, check.met(warp.index))) return begin_moment(op, warp);
    list_read(check.late, warp.index, info, kAllLanes, pattern, plan.base, plan.half);
    plan.epoch = epoch;
  }
  return info.full(op, warp);
}

#ifndef KW_SIM_SMALL

/// A load or store of global memory whose lanes, or those of each half, lie side by side, by the
/// plan of the access itself.
template <AccessKind kMode>
const Op* checked_global(const Op* op, Warp& warp) {
  BlockCheck& check = BlockCheck::of(warp);
  const CheckedOp& info = check.ops[warp.op_index(op)];
  const MemorySite& site = warp.worker->sites.data()[op->site];
  const auto pattern = static_cast<Pattern>(site.pattern);
  const bool halves = pattern == Pattern::half_contiguous;
  const bool runs =
      (halves || pattern == Pattern::contiguous) && (op->flags & kAddress32) == 0 && !check.careful;
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
  BlockCheck& check = BlockCheck::of(warp);
  const std::uint32_t index = warp.op_index(op);
  const CheckedOp& access = check.ops[index + 1];
  const MemorySite& site = warp.worker->sites.data()[op[1].site];
  std::uint64_t base = 0;
  if (!check.careful && find_elements(op, warp, site, access.bytes, base) &&
      check_run<kMode>(check, warp, access, base))
    return check.ops[index].full(op, warp);
  return handler_alone(*op)(op, warp);
}

#endif

}  // namespace

CheckedHandlers checked_handlers() {
#ifdef KW_SIM_SMALL
  return {checked<false>, checked<true>,  checked_fixed_load, checked<false>,
          checked<false>, checked<false>, checked<false>};
#else
  return {checked<false>,
          checked<true>,
          checked_fixed_load,
          checked_global<AccessKind::read>,
          checked_global<AccessKind::write>,
          checked_indexed<AccessKind::read>,
          checked_indexed<AccessKind::write>};
#endif
}

}  // namespace kernwright::sim::KW_SIM_NS
