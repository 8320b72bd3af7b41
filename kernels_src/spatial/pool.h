// Pooling: largest values and averages of windows, and their gradients.
#pragma once

#include "array/array.h"
#include "core/stream.h"

#include <array>
#include <cstdint>
#include <optional>

namespace kernwright::kernels {

/// The windows of a pooling over three axes; fewer axes have extents and windows of 1 in front.
/// Output o of an axis takes `size` inputs, `dilation` apart, from o * stride - padding on; with
/// `adaptive` the inputs from floor(o in / out) up to ceil((o + 1) in / out). Sizes, strides and
/// dilations are above 0, and at least one input lies in each window.
struct WindowGeometry {
  std::array<std::int32_t, 3> in, out, size, stride, padding, dilation;
  std::int32_t divisor = 0;  ///< of an average; 0: the number of elements of the window
  bool adaptive = false;
  bool count_padding = true;  ///< whether that number has the padding within its limits
};

struct Pooled {
  Array values;
  std::optional<Array> places;  ///< int64: of the largest values in their planes, row-major
};

/// The first of the largest values of each window; a NaN where it holds one. `x` is (planes, in...)
/// of float16, bfloat16, float32 or float64, the result (planes, out...). Queued on `stream`
/// (empty: the device's legacy stream). Throws InvalidArgument for what does not fit.
Pooled pool_largest(const Array& x, const WindowGeometry& windows, bool places,
                    const Stream& stream = {});
/// The averages of the windows, summed in float32 (float64 of float64).
Array pool_average(const Array& x, const WindowGeometry& windows, const Stream& stream = {});
/// The gradient of x, (planes, in...), for that of the result; `places` of pool_largest(), nothing
/// for averages. Sums have a fixed order.
Array pool_backward(const Array& dy, const std::optional<Array>& places,
                    const WindowGeometry& windows, const Stream& stream = {});

}  // namespace kernwright::kernels
