// One access of a warp under checks, and how its lanes lie.
#pragma once

#include "sim/check/block_check.h"
#include "sim/ops/memory/memory_plan.h"

#include <bit>
#include <cstdint>

namespace kernwright::sim::KW_SIM_NS {

/// One access of a warp.
struct WarpTouch {
  const Op* op;
  const CheckedOp* info;
  AccessKind mode;
  std::uint32_t mask;
  std::uint32_t bytes;              ///< per lane
  int first;                        ///< lowest active lane
  const std::uint64_t* address;     ///< of all lanes, as the instruction has them
  Pattern pattern = Pattern::none;  ///< of the lanes in `mask`
};

/// The contiguous bytes of a full warp, in one piece or in two.
struct Runs {
  std::uint64_t bytes = 0;  ///< 0: each lane for itself
  bool two = false;
};

[[gnu::always_inline]] inline Runs pattern_runs(Pattern pattern, std::uint64_t bytes) {
  switch (pattern) {
    case Pattern::uniform: return {bytes};
    case Pattern::contiguous: return {bytes * kLanes};
    case Pattern::half_uniform: return {bytes, true};
    case Pattern::half_contiguous: return {bytes * kLanes / 2, true};
    default: return {};
  }
}

/// Notes the lanes' distances anew.
[[gnu::noinline]] inline void replan(CheckSite& site, const WarpTouch& touch) {
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
  site.apart = Apart::unknown;
}

/// Whether no two lanes touch the same bytes. Found out when a pattern comes again.
[[gnu::noinline]] inline void find_apart(CheckSite& site, const WarpTouch& touch) {
  std::uint64_t same = 0;
  for (std::uint32_t m = touch.mask; m != 0; m &= m - 1) {
    const auto lane = static_cast<std::size_t>(std::countr_zero(m));
    for (std::size_t i = 0; i < kLanes; ++i) {
      const bool both = i != lane && (touch.mask >> i & 1) != 0;
      same |= both && site.offsets[i] == site.offsets[lane] ? 1 : 0;
    }
  }
  site.apart = same == 0 ? Apart::yes : Apart::no;
}

[[gnu::always_inline]] inline bool fits(const CheckSite& site, const WarpTouch& touch) {
  const std::uint64_t base = touch.address[touch.first];
  std::uint64_t changed = 0;
  if (touch.mask == kAllLanes) {
    KW_LANES for (std::size_t i = 0; i < kLanes; ++i) {
      changed |= (touch.address[i] - base) ^ site.offsets[i];
    }
    return changed == 0 && site.mask == kAllLanes;
  }
  KW_LANES for (std::size_t i = 0; i < kLanes; ++i) {
    const std::uint64_t on = (touch.mask >> i & 1) != 0 ? ~std::uint64_t{0} : std::uint64_t{0};
    changed |= ((touch.address[i] - base) ^ site.offsets[i]) & on;
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

}  // namespace kernwright::sim::KW_SIM_NS
