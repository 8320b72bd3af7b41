// The checks of a matrix product's operands, scales and tiles.
#pragma once

#include "kernels_src/gemm/gemm.h"

namespace kernwright::kernels {

/// Throws InvalidArgument or ArgumentError unless the types, the scales, the tiles and the result's
/// `type` are such as the product takes.
void require_gemm(const Gemm& gemm, ScalarType type);
/// require_gemm() for a gate and a product of this shape.
void require_gated(const Gemm& gemm, const Shape& shape);

}  // namespace kernwright::kernels
