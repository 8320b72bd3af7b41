// A layer of a network.
#pragma once

#include "array/array.h"
#include "core/stream.h"
#include "kernels_src/epilogue/product_epilogue.h"
#include "kernels_src/norm/norm.h"

#include <optional>

namespace kernwright::kernels {

struct LinearCall {
  Array x;                       ///< (..., k): float16, bfloat16, float32 or float64
  Array weights;                 ///< (n, k), of x's type; with `scale` is_narrow_weight() too
  std::optional<Array> scale{};  ///< float32, of 8-bit weights: one number, or n
  ProductEpilogue epilogue{};    ///< bias, activation and residual, or bias and gate
  bool tf32 = false;  ///< float32 x of more rows than one kernel takes may be rounded, as in Gemm
  /// x counts as its norm. One row is one kernel where that pays, with the gate.
  std::optional<RowNorm> norm{};
  /// Takes the result: any strides, apart from all operands but the residual, which it may be. One
  /// that is not contiguous from a multiple of 16 bytes on costs a copy.
  std::optional<Array> out{};
};

/// activation(x @ (scale * weights)^T + bias) + residual, of the shape (..., n) and x's type. Up to
/// most_skinny_rows() rows are one kernel, see skinny_product(); more are a Gemm where tiles pay,
/// see plan_product(), else a plain product of the weights in x's type, whose result is rounded
/// before bias and activation. A residual is added to the rounded result of the steps; a Gemm
/// without activation adds it before it rounds. Throws InvalidArgument, ArgumentError;
/// CompileError, OutOfMemory, DriverError.
Array linear(const LinearCall& call, const Stream& stream = {});

/// Throws InvalidArgument unless the epilogue and the norm of a layer, of `shape` without a gate,
/// fit.
void require_linear_operands(const Array& x, const ProductEpilogue& epilogue,
                             const std::optional<RowNorm>& norm, const Shape& shape);

}  // namespace kernwright::kernels
