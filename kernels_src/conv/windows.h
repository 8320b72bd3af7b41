// Launches of windows.cu: the operands of a convolution's product, and the result.
#pragma once

#include "kernels_src/conv/conv_plan.h"

#include <optional>

namespace kernwright::kernels {

/// Strides of a 4-dimensional array in elements: of weights (first, second, y, x).
struct WeightStrides {
  std::int64_t group = 0, output = 0, channel = 0, y = 0, x = 0;
};

/// The convolution that the launches of a call share.
struct ConvCall {
  const ConvGeometry& geometry;
  const ConvSizes& sizes;
  const ConvPlan& plan;
  const Stream& on;

  /// The windows of x, (groups, all_rows, inner): rows overlap in memory. `memory` holds it; tell
  /// it of the last use.
  struct Lines {
    Array memory, windows;
  };
  Lines unfold(const Array& x, bool has_ones = false) const;
  /// Weights as the left operand, (groups, products, inner); a bias belongs to the channel of ones.
  Array lay_weights(const Array& weight, const WeightStrides& strides,
                    const std::optional<Array>& bias) const;
  /// (n, outputs, out...) of the product (groups, products, all_rows), plus the bias.
  Array fold(const Array& product, const std::optional<Array>& bias) const;
  /// (groups, outputs, all_rows) of dy (n, outputs, out...): zeros where a row has no output.
  Array spread(const Array& dy) const;
};

}  // namespace kernwright::kernels
