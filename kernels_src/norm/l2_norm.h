// The L2 norm along an axis, and its gradient.
#pragma once

#include "array/array.h"
#include "core/stream.h"

#include <optional>

namespace kernwright::kernels {

/// x / max(sqrt(sum(x^2)), eps) along `axis`; NormKind::l2 of norm(). For an axis other than the
/// last x is copied first, and the result afterwards. `out` is that of norm(). Types, stream and
/// errors as norm().
Array l2_norm(const Array& x, int axis, double eps, const std::optional<Array>& out = std::nullopt,
              const Stream& stream = {});

/// dx for the gradient `dy` of l2_norm(x, axis, eps); see norm_backward().
Array l2_norm_backward(const Array& dy, const Array& x, int axis, double eps,
                       const Stream& stream = {});

}  // namespace kernwright::kernels
