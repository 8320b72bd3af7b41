// Convolutions over two axes of space, transposed ones, and the gradients of weights.
#pragma once

#include "array/array.h"
#include "core/stream.h"

#include <array>
#include <cstdint>
#include <optional>

namespace kernwright::kernels {

/// The axes of space are y and x; a sequence has an extent and a kernel of 1 along y. `padding` is
/// in front of the first element. Output o of a convolution takes the inputs o * stride - padding +
/// k * dilation; input i of a transposed one goes to these outputs. Places outside do not count.
struct ConvGeometry {
  std::array<std::int32_t, 2> in, out, kernel, stride, padding, dilation;
  std::int32_t groups = 1;
};

/// The convolution of x (n, channels, in...) with weights (outputs, channels / groups, kernel...)
/// and a bias (outputs,): (n, outputs, out...). All are float16, bfloat16, float32 or float64 of
/// one type, with any strides. Sums are float32 (float64 of float64), in a fixed order; `tf32`
/// rounds float32 operands of matrix products to 11 bits. Queued on `stream` (empty: the device's
/// legacy stream). Throws InvalidArgument with the shapes for what does not fit; CompileError,
/// OutOfMemory, DriverError.
Array convolve(const Array& x, const Array& weight, const std::optional<Array>& bias,
               const ConvGeometry& geometry, bool tf32 = false, const Stream& stream = {});

/// The transposed convolution, with weights (channels, outputs / groups, kernel...).
Array convolve_transposed(const Array& x, const Array& weight, const std::optional<Array>& bias,
                          const ConvGeometry& geometry, bool tf32 = false,
                          const Stream& stream = {});

/// The gradient of the weights of convolve(x, ...), from the gradient dy of the result: (outputs,
/// channels / groups, kernel...).
Array convolve_weight_gradient(const Array& x, const Array& dy, const ConvGeometry& geometry,
                               bool tf32 = false, const Stream& stream = {});

}  // namespace kernwright::kernels
