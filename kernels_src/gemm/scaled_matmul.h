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
  bool fast_sums = false;                  ///< see Gemm
};

/// (a * its scales) @ (b * its scales) + bias. Scales of a are one number, one for each row, (...,
/// m) or (..., m, 1), those of b one number or one for each column, (n,) or (1, n); then they
/// multiply sums. Or those of a are (..., m, k / 128) and those of b (k / 128, n / 128), rounded
/// up: each of blocks of float8, which multiply the sums of 128 elements. By Gemm, which says what
/// is exact where. Queued on `stream`. Throws InvalidArgument ("Incompatible dimensions", "same
/// device") and ArgumentError for types, which name what does not fit.
Array scaled_matmul(const ScaledMatmul& call, const Stream& stream = {});

}  // namespace kernwright::kernels
