// Interpolation along one axis.
#pragma once

#include "array/array.h"
#include "core/stream.h"

#include <cstdint>

namespace kernwright::kernels {

enum class Interpolation : std::uint8_t { nearest, nearest_exact, linear, cubic };

/// How outputs lie on the inputs: output o takes the inputs around o * scale with `align_corners`,
/// else around (o + 0.5) scale - 0.5 (nearest: floor(o scale), nearest_exact: floor((o + 0.5)
/// scale)). Inputs beyond the ends are those at the ends. Cubic is Keys' with a = -3/4. So torch's
/// interpolate().
struct ResampleOptions {
  Interpolation mode = Interpolation::linear;
  double scale = 1;
  bool align_corners = false;
};

/// `x` of float16, bfloat16, float32 or float64 with `extent` elements along `axis`, computed in
/// float32 (float64 of float64), as `type`: that of x, or float32. Queued on `stream` (empty: the
/// device's legacy stream). Throws InvalidArgument for what does not fit.
Array resample(const Array& x, int axis, std::int64_t extent, const ResampleOptions& options,
               ScalarType type, const Stream& stream = {});
/// The gradient of an input with `extent` elements along `axis` for that of the result.
Array resample_backward(const Array& dy, int axis, std::int64_t extent,
                        const ResampleOptions& options, ScalarType type, const Stream& stream = {});

}  // namespace kernwright::kernels
