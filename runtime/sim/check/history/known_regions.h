// The regions of global memory used lately by a block.
#pragma once

#include "sim/check/history/global_shadow.h"
#include "sim/check/race/touch.h"

#include <array>
#include <cstddef>
#include <cstdint>
#include <mutex>

namespace kernwright::sim {

class KnownRegions {
 public:
  explicit KnownRegions(GlobalShadow& shadow) : shadow_(shadow) {}

  /// The region around a global address.
  GlobalRegion* at(std::uint64_t address) {
    const std::uint64_t number = address >> kRegionShift;
    Slot& slot = slots_[number % kSlots];
    if (slot.number != number) slot = {number, &shadow_.region(address)};
    return slot.region;
  }
  /// Calls f(LaneTouch) for each part of global memory within one region, locked.
  template <typename F>
  void each(std::uint64_t address, std::uint64_t bytes, AccessKind mode, F f) {
    by_region(address, bytes, [&](std::uint64_t begin, std::uint64_t count) {
      GlobalRegion& there = *at(begin);
      const std::lock_guard lock(there);
      f(LaneTouch{mode, ptx::Space::global, begin, static_cast<std::uint32_t>(count), &there});
    });
  }

 private:
  static constexpr std::size_t kSlots = 64;
  struct Slot {
    std::uint64_t number = ~std::uint64_t{0};
    GlobalRegion* region = nullptr;
  };

  GlobalShadow& shadow_;
  std::array<Slot, kSlots> slots_{};
};

}  // namespace kernwright::sim
