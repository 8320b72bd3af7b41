// The checks of full warps with neighbouring lanes in global memory: one test of a few granules.
#pragma once

#include "sim/check/handlers/checked_race.h"
#include "sim/check/history/poison.h"

#include <bit>
#include <cstdint>
#include <cstdlib>

namespace kernwright::sim::KW_SIM_NS {

/// Lane `first` + i, of `lanes` lanes, touches `info.bytes` bytes at base + i * info.bytes, inside
/// an allocation. Whether the quick test is enough; then both checks are done. False: check each
/// word, from the start.
template <AccessKind kMode>
[[gnu::noinline]] bool check_run(BlockCheck& check, const Warp& warp, const CheckedOp& info,
                                 std::uint64_t base, std::uint32_t first = 0,
                                 std::uint32_t lanes = kLanes) {
  constexpr bool kWrites = kMode == AccessKind::write;
  const std::uint64_t bytes = std::uint64_t{info.bytes} * lanes, at = base % kRegionBytes;
  if (at + bytes > kRegionBytes || info.site >= kMostSites) return false;
  if (kWrites && check.copies.sources.meets(base, base + bytes)) return false;
  CheckSite& site = check.sites[info.site];
  if (site.region_number != base >> kRegionShift) {
    site.region = check.regions.at(base);
    site.region_number = base >> kRegionShift;
  }
  GlobalRegion& region = *site.region;
  if (first == 0) {
    const std::uint64_t next = at + (base - site.last);
    site.last = base;
    if (next < kRegionBytes) __builtin_prefetch(region.granules + next / kGranuleBytes, 1);
  }
  if (!check.alone) region.lock();
  region.end_scatter(check.order.launch_floor);
  std::uint64_t* const poison = check.init ? region.poison.load() : nullptr;
  bool fine = true;
  if (poison != nullptr) {
    if constexpr (kWrites) {
      set_poison<false>(poison, at, bytes);
    } else {
      fine = !any_poison(poison, at, bytes);
    }
  }
  if (fine && check.race && info.bytes < 4) {
    const bool whole = bytes == kGranuleBytes && at % kGranuleBytes == 0;
    const ShadowView<true> view = prepare<true>(check, info, warp.index, &region);
    const bool parts = check.parts || check.order.scattered;
    const Row row{at, info.bytes, lanes, warp.index * std::uint32_t{kLanes} + first};
    const auto touch = [&] {
      return touch_granules<kWrites>(view, false, at / 4, kGranuleWords, row.thread0, kHalfWords);
    };
    fine = (whole && !parts &&
            (touch() || (forget_old_words(view, at / 4, kGranuleWords) && touch()))) ||
           race_row<kWrites>(check, view, parts, row) == 0;
  } else if (fine && check.race) {
    const std::uint32_t words = info.bytes / 4u;
    fine = touch_run<kWrites>(prepare<true>(check, info, warp.index, &region),
                              check.parts || check.order.scattered, at / 4, words * lanes,
                              warp.index * std::uint32_t{kLanes} + first,
                              static_cast<std::uint32_t>(std::countr_zero(words)));
  }
  if (!check.alone) region.unlock();
  return fine;
}

/// The same for the two halves of a warp, the second `half` bytes behind the first.
template <AccessKind kMode>
[[gnu::noinline]] bool check_halves(BlockCheck& check, const Warp& warp, const CheckedOp& info,
                                    std::uint64_t base, std::int64_t half) {
  constexpr std::uint32_t kHalf = kLanes / 2;
  const bool apart = std::abs(half) >= std::int64_t{info.bytes} * kHalf;
  if (kMode == AccessKind::write && !apart) return false;  // two lanes write to one place
  return check_run<kMode>(check, warp, info, base, 0, kHalf) &&
         check_run<kMode>(check, warp, info, base + static_cast<std::uint64_t>(half), kHalf, kHalf);
}

}  // namespace kernwright::sim::KW_SIM_NS
