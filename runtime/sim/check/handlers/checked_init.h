// The init check of one access of a warp.
#pragma once

#include "sim/check/handlers/checked_sites.h"
#include "sim/check/history/poison.h"

namespace kernwright::sim::KW_SIM_NS {

/// Reads or clears the bits of the lanes' bytes. `at` is the first active lane's place in the
/// bitmap. Returns whether an unwritten byte is read.
[[gnu::always_inline]] inline bool poisoned(const CheckSite& site, const WarpTouch& touch,
                                            std::uint64_t* map, std::uint64_t at) {
  const Runs runs = pattern_runs(touch.pattern, touch.bytes);
  const bool shaped =
      touch.pattern == Pattern::contiguous ? touch.mask == kAllLanes : runs.bytes != 0;
  if (touch.mode != AccessKind::write) {
    if (shaped)
      return any_poison(map, at, runs.bytes) ||
             (runs.two && any_poison(map, at + site.offsets[kLanes / 2], runs.bytes));
    std::uint64_t bits = 0;  // aligned accesses never straddle a word of the map
    const auto look = [&](std::uint64_t place) { bits |= map[place >> 6] >> (place & 63); };
    if (touch.mask == kAllLanes) {
      KW_LANES for (std::uint32_t i = 0; i < kLanes; ++i) look(at + site.offsets[i]);
    } else {
      const std::uint64_t home = site.offsets[static_cast<unsigned>(touch.first)];
      KW_LANES for (std::uint32_t i = 0; i < kLanes; ++i) {
        look(at + ((touch.mask >> i & 1) != 0 ? site.offsets[i] : home));
      }
    }
    return (bits & ((std::uint64_t{1} << touch.bytes) - 1)) != 0;
  }
  if (touch.pattern == Pattern::contiguous && shaped) {
    set_poison<false>(map, at, runs.bytes);
  } else {
    each_lane(site, touch,
              [&](int, std::uint64_t offset) { set_poison<false>(map, at + offset, touch.bytes); });
  }
  return false;
}

/// Finds the lanes with unwritten reads. Lanes of an atomic operation also write.
[[gnu::noinline]] inline void report_poison(BlockCheck& check, Warp& warp, const CheckSite& site,
                                            const WarpTouch& touch, ptx::Space space,
                                            std::uint64_t* map, std::uint64_t at,
                                            std::uint64_t base) {
  const bool reads = touch.mode == AccessKind::read;
  const std::uint64_t matters = reads ? std::uint64_t{touch.info->wanted} : ~std::uint64_t{0};
  each_lane(site, touch, [&](int lane, std::uint64_t offset) {
    if ((poison_bits(map, at + offset, touch.bytes) & matters) == 0) return;
    clear_poison(map, at + offset,
                 check.unwritten.judge(touch.op, warp, lane,
                                       {touch.mode, space, base + offset, touch.bytes}));
  });
  if (reads) return;
  each_lane(site, touch,
            [&](int, std::uint64_t offset) { set_poison<false>(map, at + offset, touch.bytes); });
}

[[gnu::always_inline]] inline void init(BlockCheck& check, Warp& warp, const CheckSite& site,
                                        const WarpTouch& touch, ptx::Space space,
                                        std::uint64_t* map, std::uint64_t at, std::uint64_t base) {
  if (poisoned(site, touch, map, at)) [[unlikely]]
    report_poison(check, warp, site, touch, space, map, at, base);
}

}  // namespace kernwright::sim::KW_SIM_NS
