// Norms, scaling and sums of gradients, of many tensors at once.
#pragma once

#include "array/array.h"
#include "core/stream.h"

#include <cstdint>
#include <optional>
#include <vector>

namespace kernwright::kernels {

struct GradientNorm {
  Array norm;   ///< float32 without axes
  Array scale;  ///< float32 without axes: min(1, limit / (norm + 1e-6)), as torch has it
};

/// The norm of all gradients as one vector: (sum of |g|^order)^(1 / order) for an order above 0, at
/// infinity the largest magnitude. Sums are made in float32 (float64 of float64) by threads of up
/// to 32 elements, beyond in float64, always in the same order. Throws InvalidArgument.
GradientNorm gradient_norm(const std::vector<Array>& grads, double limit, double order,
                           const Stream& stream = {});

/// Multiplies each tensor in place with the one float32 of `scale`; reads nothing where that is 1.
void scale_tensors(const std::vector<Array>& tensors, const Array& scale,
                   const Stream& stream = {});

/// How much is added, and a count that grows by it: one int64 each on the device, or the number on
/// the host.
struct BlendCount {
  Array total;  ///< while it is 0, sums begin anew
  std::optional<Array> weight = std::nullopt;
  std::int64_t number = 1;  ///< where there is no `weight`
  bool is_factor = true;    ///< whether the weight is a factor of beta
};

/// to[i] = alpha * to[i] + beta * from[i], in the type of `to` (float32 or float64); shapes are
/// equal, `from` may have any strides. With a `count`, the weight is added to its total
/// afterwards; a weight of 0 changes nothing. Everything is checked, allocated and
/// compiled before the first launch. Throws InvalidArgument.
void blend_tensors(const std::vector<Array>& to, const std::vector<Array>& from, double alpha,
                   double beta, const std::optional<BlendCount>& count, const Stream& stream = {});

}  // namespace kernwright::kernels
