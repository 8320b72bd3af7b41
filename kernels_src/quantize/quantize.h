// Rows as 8-bit numbers times a scale.
#pragma once

#include "array/array.h"
#include "core/stream.h"

#include <optional>

namespace kernwright::kernels {

struct Quantized {
  Array values;  ///< of the shape of what was quantised
  Array scales;  ///< float32: one for each row, or without axes one for all
};

/// How many numbers share a scale.
enum class QuantizeScope : std::uint8_t { row, tensor };

/// value = x / scale, rounded to nearest even, with scale = largest magnitude / the type's largest
/// number: 127 of int8 (symmetric: -128 is not used), 448 of float8_e4m3fn, 57344 of float8_e5m2.
/// A row is the last axis; `x` is float16, bfloat16 or float32 with any strides. A row of zeros has
/// the scale 0. A NaN in it makes its scale NaN, an infinity makes it infinite. With `scales` (one,
/// or one a row) these are taken, and what they do not reach is clipped. Short rows are read once,
/// held in registers; long ones and whole tensors by several blocks, twice. Queued on `stream`.
/// Throws InvalidArgument.
Quantized quantize_rows(const Array& x, ScalarType type, QuantizeScope scope = QuantizeScope::row,
                        const std::optional<Array>& scales = std::nullopt,
                        const Stream& stream = {});

/// The same for every `block` (16, 32, 64, 128 or 256) numbers of a row; the last may be fewer.
/// Scales have x's shape with (columns + block - 1) / block at the end; their rows follow each
/// other in memory, as Gemm takes them. One pass. Throws InvalidArgument.
Quantized quantize_blocks(const Array& x, std::int64_t block, ScalarType type,
                          const Stream& stream = {});

/// value * scale as `type` (float16, bfloat16, float32); `scales` has one number, or one for each
/// row. Throws InvalidArgument.
Array dequantize_rows(const Array& values, const Array& scales, ScalarType type,
                      const Stream& stream = {});

}  // namespace kernwright::kernels
