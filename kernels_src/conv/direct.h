// Launches of direct.cu: convolutions of few channels.
#pragma once

#include "kernels_src/conv/conv_plan.h"

#include <optional>

namespace kernwright::kernels {

/// By a thread for each output; `bias` is contiguous.
Array convolve_directly(const Array& x, const Array& weight, const std::optional<Array>& bias,
                        const ConvGeometry& geometry, const ConvSizes& sizes, const Stream& on);
/// By a block for some weights. Sizes as for the convolution.
Array weight_gradient_directly(const Array& x, const Array& dy, const ConvGeometry& geometry,
                               const ConvSizes& sizes, const Stream& on);

}  // namespace kernwright::kernels
