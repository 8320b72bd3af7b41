// A layer of a network.
#pragma once

#include "array/array.h"
#include "core/stream.h"
#include "kernels_src/activations/activations.h"
#include "kernels_src/norm/norm.h"

#include <optional>

namespace kernwright::kernels {

struct LinearCall {
  Array x;                          ///< (..., k): float16, bfloat16, float32 or float64
  Array weights;                    ///< (n, k), of x's type; with `scale` is_narrow_weight() too
  std::optional<Array> bias{};      ///< (n,)
  std::optional<Array> scale{};     ///< float32, of 8-bit weights: one number, or n
  std::optional<Array> residual{};  ///< (..., n)
  std::optional<ActivationCall> activation{};
  bool tf32 = false;  ///< float32 x of more rows than one kernel takes may be rounded, as in Gemm
  /// With a gate the result has n / 2 columns, see GemmEpilogue; only a bias goes
  /// with a gate.
  std::optional<ActivationCall> gate{};
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

/// Throws InvalidArgument unless a bias or residual of linear() is absent, or has this shape, and
/// the type and device of x.
void require_like_linear_result(const Array& x, const std::optional<Array>& extra, const char* name,
                                const Shape& shape);

}  // namespace kernwright::kernels
