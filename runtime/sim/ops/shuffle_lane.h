// The source lane of shfl.
#pragma once

#include "sim/ptx/types.h"

#include <cstdint>

namespace kernwright::sim {

/// Source lane of `lane` by the operands b and c of shfl (PTX manual, shfl.sync), or -1 where it
/// lies outside the segment.
template <ptx::ShflMode kMode>
[[gnu::always_inline]] constexpr std::int32_t source_lane(std::int32_t lane, std::int32_t b,
                                                          std::int32_t c) {
  using ptx::ShflMode;
  const std::int32_t delta = b & 31, clamp = c & 31, segment = (c >> 8) & 31;
  const std::int32_t low = lane & segment, limit = low | (clamp & ~segment);
  std::int32_t from = 0;
  if constexpr (kMode == ShflMode::up) from = lane - delta;
  if constexpr (kMode == ShflMode::down) from = lane + delta;
  if constexpr (kMode == ShflMode::bfly) from = lane ^ delta;
  if constexpr (kMode == ShflMode::idx) from = low | (delta & ~segment);
  const bool inside = kMode == ShflMode::up ? from >= limit : from <= limit;
  return inside ? from : -1;
}

}  // namespace kernwright::sim
