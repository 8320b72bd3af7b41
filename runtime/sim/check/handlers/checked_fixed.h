// The checks of accesses to shared memory with the same addresses in every block, by the ops'
// plans.
#pragma once

#include "sim/check/handlers/checked_init.h"
#include "sim/check/handlers/checked_race.h"
#include "sim/code/fast_handlers.h"

#include <cstdint>

namespace kernwright::sim::KW_SIM_NS {

/// A read of separate words, by the site's pattern at the time of the op's plan.
[[gnu::noinline]] inline bool check_gather(BlockCheck& check, const Warp& warp, const Op* op,
                                           const CheckedOp& info, FixedPlan& plan) {
  const CheckSite& site = check.sites[info.site];
  if (plan.half == 0 || plan.half != site.tag) return false;
  const WarpTouch touch{op,         &info, AccessKind::read, kAllLanes,
                        info.bytes, 0,     nullptr,          Pattern::gather};
  if (check.init && poisoned(site, touch, check.unwritten.shared, plan.base)) return false;
  const bool plain = info.bytes >= 4 && info.site < kMostSites;
  if (check.race && !is_put_off(check, warp, site, touch, plain, plan.base)) return false;
  plan.epoch = check.shared.read_epoch;
  return true;
}

/// Prepares check_gather() for an access that fits the site now.
inline void note_gather(BlockCheck& check, const Warp& warp, const Op* op, const CheckedOp& info) {
  auto& plan = *reinterpret_cast<FixedPlan*>(warp.frame + op->e);
  if (static_cast<Pattern>(plan.pattern) == Pattern::gather) plan.half = check.sites[info.site].tag;
}

/// An access to shared memory with a pattern known to the op's own plan. False: check it fully.
[[gnu::noinline]] inline bool check_fixed(BlockCheck& check, const Warp& warp, const Op* op,
                                          const CheckedOp& info, AccessKind mode) {
  auto& plan = *reinterpret_cast<FixedPlan*>(warp.frame + op->e);
  const bool reads = mode == AccessKind::read;
  const std::uint32_t epoch = check.shared.read_epoch;
  if (reads && plan.epoch == epoch && epoch != 0) return true;
  const auto pattern = static_cast<Pattern>(plan.pattern);
  if (pattern == Pattern::none) return false;
  if (pattern == Pattern::gather) return reads && check_gather(check, warp, op, info, plan);
  const std::uint64_t bytes = info.bytes, base = plan.base;
  const auto half = static_cast<std::uint64_t>(static_cast<std::int64_t>(plan.half));
  const auto [run, halves] = pattern_runs(pattern, bytes);
  if (check.init) {
    if (mode == AccessKind::write) {
      set_poison<false>(check.unwritten.shared, base, run);
      if (halves) set_poison<false>(check.unwritten.shared, base + half, run);
    } else {
      if (any_poison(check.unwritten.shared, base, run)) return false;
      if (halves && any_poison(check.unwritten.shared, base + half, run)) return false;
    }
  }
  if (reads) plan.epoch = epoch;
  if (!check.race) return true;
  if (!reads && check.proxy.reads.span.high != 0) return false;
  const bool plain = bytes >= 4 && info.site < kMostSites;
  if (check.shared.defers) {
    if (reads && plain && !check.shared.written.any(base, base + run) &&
        (!halves || !check.shared.written.any(base + half, base + half + run))) {
      put_off(check, warp, info, kAllLanes, pattern, base, half, nullptr);
      return true;
    }
    check.settle_reads();
    if (!reads) {
      check.shared.new_epoch();
      check.shared.written.mark(base, base + run);
      if (halves) check.shared.written.mark(base + half, base + half + run);
    }
  }
  const ShadowView<false> view = prepare<false>(check, info, warp.index, nullptr);
  const WarpTouch touch{op, &info, mode, kAllLanes, info.bytes, 0, nullptr};
  const bool fine = plain && race_by_pattern(view, check.parts, pattern, half_words(half), touch,
                                             base / 4, warp.index * std::uint32_t{kLanes});
  if (!fine) plan.epoch = 0;
  return fine;
}

}  // namespace kernwright::sim::KW_SIM_NS
