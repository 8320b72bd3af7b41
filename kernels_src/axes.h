// How a reduction or a scan walks a strided view: axes that stay and axes that go, as few as can
// be.
#pragma once

#include "array/array.h"
#include "driver/driver_types.h"

#include <cstdint>
#include <span>
#include <vector>

namespace kernwright::kernels {

/// Axes of each kind that the kernels take.
inline constexpr std::size_t kMaxAxes = 4;

/// One axis; strides in bytes. An axis that goes has no `to`.
struct Axis {
  std::int64_t extent = 1;
  std::int64_t to = 0;
  std::int64_t from = 0;
  bool operator==(const Axis&) const = default;
};

/// Innermost first, without axes of extent 1, neighbours that follow each other as one.
struct AxesPlan {
  CUdeviceptr from = 0;
  std::vector<Axis> kept;     ///< by rising distance of the elements
  std::vector<Axis> reduced;  ///< the same; row-major where the order of elements counts

  std::int64_t outputs() const noexcept;  ///< results
  std::int64_t length() const noexcept;   ///< elements that become one
  bool fits() const noexcept { return kept.size() <= kMaxAxes && reduced.size() <= kMaxAxes; }
};

/// Plans the walk over `array` where `goes` says which axes go, and `to_strides` how far apart the
/// results of the axes that stay are (one stride for each of those). `ordered`: the elements keep
/// their row-major order.
AxesPlan plan_axes(const Array& array, const std::vector<bool>& goes,
                   std::span<const std::int64_t> to_strides, bool ordered);

/// The kernels' parameters, laid out as those of include/axes.cuh.
struct KeptAxes {
  std::int64_t extent[kMaxAxes];
  std::int64_t to[kMaxAxes];
  std::int64_t from[kMaxAxes];
  std::int32_t ndim;
};
struct ReducedAxes {
  std::int64_t extent[kMaxAxes];
  std::int64_t from[kMaxAxes];
  std::int32_t ndim;
};
KeptAxes kept_axes(const std::vector<Axis>& axes);
ReducedAxes reduced_axes(const std::vector<Axis>& axes);

/// Whether each element lies at a multiple of its size, as the kernels read it.
bool elements_are_aligned(const Array& array);

/// Whether several of its elements are one: a stride of 0.
bool repeats_elements(const Array& array);

}  // namespace kernwright::kernels
