// How a reduction or a scan walks a strided view: kept axes and reduced axes, as few as possible.
#pragma once

#include "array/array.h"
#include "driver/driver_types.h"
#include "kernels_src/walk_plan.h"

#include <cstdint>
#include <span>
#include <vector>

namespace kernwright::kernels {

/// Axes of each kind that the kernels take.
inline constexpr std::size_t kMaxAxes = 4;

/// One axis; strides in bytes of the results and of the elements. An axis that goes has no stride
/// in the results.
using Axis = WalkDim<2>;

/// Innermost first, without axes of extent 1, neighbours that follow each other as one.
struct AxesPlan {
  CUdeviceptr from = 0;
  WalkDims<2> kept;     ///< by rising distance of the elements
  WalkDims<2> reduced;  ///< the same; row-major where the order of elements counts

  /// Results.
  std::int64_t outputs() const noexcept { return count_elements(kept); }
  /// Elements that become one.
  std::int64_t length() const noexcept { return count_elements(reduced); }
  bool fits() const noexcept { return kept.size() <= kMaxAxes && reduced.size() <= kMaxAxes; }
};

/// Plans the walk over `array`. `goes` marks the reduced axes; `to_strides` has one stride of the
/// result for each kept axis. `ordered`: the elements keep their row-major order.
AxesPlan plan_axes(const Array& array, const std::vector<bool>& goes,
                   std::span<const std::int64_t> to_strides, bool ordered);

/// The kernels' parameter for axes of one kind.
using AxesWalk = Walk<2, kMaxAxes>;

/// Whether several elements are one place in memory: a stride of 0.
bool repeats_elements(const Array& array);

}  // namespace kernwright::kernels
