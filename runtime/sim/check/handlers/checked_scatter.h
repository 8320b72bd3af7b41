// The race check of stores with lanes far apart in global memory, as in a matrix transpose: all
// regions in one pass, and one test of all granules of a region instead of many.
#pragma once

#include "sim/check/handlers/checked_sites.h"
#include "sim/check/history/poison.h"

#include <array>
#include <cstddef>
#include <cstdint>

namespace kernwright::sim::KW_SIM_NS {

/// Holds regions, locked from lower addresses to higher ones: no two workers wait for each other.
class RegionLocks {
 public:
  explicit RegionLocks(bool alone) : alone_(alone) {}
  ~RegionLocks() {
    for (std::size_t i = 0; i < count_; ++i) held_[i]->unlock();
  }
  RegionLocks(const RegionLocks&) = delete;
  RegionLocks& operator=(const RegionLocks&) = delete;

  void add(GlobalRegion& region) noexcept {
    if (alone_) return;
    region.lock();
    held_[count_++] = &region;
  }

 private:
  bool alone_;
  std::size_t count_ = 0;
  std::array<GlobalRegion*, kLanes> held_;
};

/// Whether scatter() may be asked.
[[gnu::always_inline]] inline bool scatters(const BlockCheck& check, const CheckSite& site,
                                            const WarpTouch& touch, std::uint64_t base) {
  return touch.mode == AccessKind::write && touch.pattern == Pattern::gather &&
         touch.mask == kAllLanes && site.apart == Apart::yes && check.race && !touch.info->strong &&
         touch.info->site < kMostSites &&
         !check.copies.sources.meets(base - site.low, base + site.high);
}

/// Every lane stores one word, no two the same. Whether these words are untouched in this launch;
/// then the checks are done. False: they need the other tests.
[[gnu::noinline]] inline bool scatter(BlockCheck& check, const Warp& warp, const CheckSite& site,
                                      const WarpTouch& touch, std::uint64_t base) {
  std::array<Shadow*, kLanes> shadows;
  RegionLocks locks(check.alone);
  const Shadow launch = check.order.launch_floor;
  std::uint64_t before = 0;
  std::uint32_t old = 0;
  bool known = true;
  for (std::size_t i = 0; i < kLanes;) {
    const std::uint64_t address = base + site.offsets[i], number = address >> kRegionShift;
    if (number <= before) return false;
    before = number;
    GlobalRegion& region = *check.regions.at(address);
    locks.add(region);
    known &= region.is_scattered(launch);
    const std::uint64_t origin = base - (number << kRegionShift);
    std::uint64_t at = address % kRegionBytes;
    const std::size_t first = i;
    do {
      shadows[i] = region.write + at / 4;
      old += *shadows[i] < launch ? 1 : 0;
      if (++i == kLanes) break;
      at = origin + site.offsets[i];
    } while (at < kRegionBytes);
    std::uint64_t* const poison = check.init ? region.poison.load() : nullptr;
    for (std::size_t lane = first; poison != nullptr && lane < i; ++lane) {
      set_poison<false>(poison, origin + site.offsets[lane], 4);
    }
  }
  if (!known || old != kLanes) return false;
  const Shadow tag = check.order.stamp | Shadow{touch.info->site} << kSiteShift | kAllBytes |
                     warp.index * std::uint32_t{kLanes};
  // Shadows of neighbours mostly come next.
  constexpr std::size_t kLineShadows = 64 / sizeof(Shadow);
  for (std::uint32_t i = 0; i < kLanes; ++i) {
    *shadows[i] = tag + i;
    __builtin_prefetch(shadows[i] + kLineShadows, 1);
  }
  return true;
}

}  // namespace kernwright::sim::KW_SIM_NS
