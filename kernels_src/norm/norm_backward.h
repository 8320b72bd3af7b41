// The gradients of norms.
#pragma once

#include "array/array.h"
#include "core/stream.h"
#include "kernels_src/norm/norm.h"

#include <optional>

namespace kernwright::kernels {

struct NormGradients {
  Array dx;
  std::optional<Array> weight;   ///< where there is a weight; of its shape and type
  std::optional<Array> bias;     ///< where it is wanted
  std::optional<Array> columns;  ///< see NormGradientOptions
};

/// What norm_backward() makes besides dx and dweight.
struct NormGradientOptions {
  bool bias =
      false;  ///< dbias, of the weight's shape and type, or without one of the rows' and x's
  /// Sums of dx over all rows, in float32 before dx is rounded, of x's type: the gradient of a bias
  /// that was added to x. They are made for rows of one axis whose sums fit into registers: of up
  /// to 2048 elements of 2 bytes, and 512 of 4 bytes. Longer ones have none.
  bool columns = false;
  std::optional<Array> added;  ///< of x's shape and type: added to dx before it is rounded
};

/// Gradients for the gradient `dy` of y = norm(x, ...): with g = dy * weight,
/// dx = (g - [mean(g)] - x_hat * mean(g * x_hat)) / sqrt(... + eps), mean(g) for layers only; for
/// L2 dx = (g - x_hat * sum(g * x_hat)) / norm, and g / eps where the norm is at most eps; dweight
/// = sum(dy * x_hat) and dbias = sum(dy) over all rows, added in float32 (float64: float64) in a
/// fixed order that depends on the device's number of multiprocessors. Statistics are computed anew
/// from x. dy has the shape and type of x.
///
/// Rows of up to 16384 elements are read once, by blocks that keep their sums for the weights on
/// chip; longer ones several times, a block a row. Uses kind, eps, weight and groups of `options`.
/// Stream and errors as norm().
NormGradients norm_backward(const Array& dy, const Array& x, const NormOptions& options,
                            const NormGradientOptions& wanted = {}, const Stream& stream = {});

}  // namespace kernwright::kernels
