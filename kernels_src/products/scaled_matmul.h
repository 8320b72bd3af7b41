// Products of 8-bit numbers times the scales that quantisation left beside them.
#pragma once

#include "array/array.h"
#include "core/stream.h"

#include <optional>

namespace kernwright::kernels {

struct ScaledMatmul {
  Array a, b;                   ///< (..., m, k) and (k, n): float8, of any two types, or both int8
  Array a_scales, b_scales;     ///< float32, see scaled_matmul()
  std::optional<Array> bias{};  ///< (n,), float16, bfloat16 or float32
  ScalarType type = ScalarType::bfloat16;  ///< float16, bfloat16 or float32
  bool fast_accum = false;                 ///< see Gemm
};

/// (a * its scales) @ (b * its scales) + bias. Scales of a are one number or one for each row,
/// (..., m) or (..., m, 1); those of b one number or one for each column, (n,) or (1, n). Then they
/// multiply accumulators. Or those of a are (..., m, k / 128) and those of b (k / 128, n / 128),
/// rounded up: one for each block of float8; they multiply the accumulators of 128 elements. By
/// Gemm, see there for exactness. Queued on `stream`. Throws InvalidArgument ("Incompatible
/// dimensions", "same device") and ArgumentError for types; both name the culprit.
Array scaled_matmul(const ScaledMatmul& call, const Stream& stream = {});

}  // namespace kernwright::kernels
