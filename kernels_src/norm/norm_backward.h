// The gradients of norms.
#pragma once

#include "array/array.h"
#include "core/stream.h"
#include "kernels_src/norm/norm.h"

#include <optional>

namespace kernwright::kernels {

struct NormGradients {
  Array dx;
  std::optional<Array> weight;  ///< where there is a weight; of its shape and type
  std::optional<Array> bias;    ///< where it is wanted
};

/// Gradients for the gradient `dy` of y = norm(x, ...): with g = dy * weight,
/// dx = (g - [mean(g)] - x_hat * mean(g * x_hat)) / sqrt(... + eps), mean(g) for layers only; for
/// L2 dx = (g - x_hat * sum(g * x_hat)) / norm, and g / eps where the norm is at most eps; dweight
/// = sum(dy * x_hat) and dbias = sum(dy) over all rows, added in float32 (float64: float64) in a
/// fixed order that depends on the device's number of multiprocessors. Statistics are computed anew
/// from x. dy has the shape and type of x; `with_bias` asks for dbias, which takes the weight's
/// shape and type, or without a weight the rows' shape and the type of x.
///
/// Rows of up to 16384 elements are read once, by blocks that keep their sums for the weights on
/// chip; longer ones several times, a block a row. Uses kind, eps, weight and groups of `options`.
/// Stream and errors as norm().
NormGradients norm_backward(const Array& dy, const Array& x, const NormOptions& options,
                            bool with_bias, const Stream& stream = {});

}  // namespace kernwright::kernels
