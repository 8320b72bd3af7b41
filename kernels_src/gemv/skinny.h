// Products with few rows: what a network does for one token or a few.
#pragma once

#include "array/array.h"
#include "core/stream.h"
#include "kernels_src/epilogue/product_epilogue.h"
#include "kernels_src/norm/norm.h"
#include "kernels_src/plans/skinny_plan.h"

#include <optional>

namespace kernwright::kernels {

constexpr std::int64_t kMostSkinnyInner = (std::int64_t{1} << 30) - 1;    ///< elements of a row
constexpr std::int64_t kMostSkinnyColumns = (std::int64_t{1} << 25) - 1;  ///< rows of the weights

/// Weights of one byte: int8, float8_e4m3fn or float8_e5m2.
constexpr bool is_narrow_weight(ScalarType type) noexcept {
  return type == ScalarType::int8 || is_float8(type);
}

/// The operands of a product with few rows.
struct SkinnyCall {
  Array x;        ///< (m, k) or (b, m, k): float16, bfloat16 or float32; m is at most kSkinnyRows
  Array weights;  ///< (n, k) or (b or 1, n, k): of x's type, or is_narrow_weight(); any strides
  /// Of x's type, without c, row scales and expression; column scales are those of the weights. A
  /// gate beside a norm.
  ProductEpilogue epilogue{};
  std::optional<RowNorm> norm{};  ///< of x; kernels that multiply one row apply it
  SkinnyPlan plan{};              ///< zeros are chosen
  /// Memory of the result, of its shape and type; see direct_target(). Apart from all operands, but
  /// it may be the residual.
  std::optional<Array> out{};
};

/// activation(alpha * scale * (x @ weights^T) + bias) + residual, of the shape (m, n) or
/// (b, m, n) and x's type. Accumulators are float32, in an order that the shapes decide: the same
/// in each run. The weights are read once: by the tensor cores where 16-bit rows begin at multiples
/// of 16 bytes, else by packs as wide as their addresses allow. With k = 0 the sum is zero. Queued
/// on `stream` (empty: the device's legacy stream). Throws InvalidArgument ("Incompatible
/// dimensions") with the shapes; CompileError, OutOfMemory, DriverError.
Array skinny_product(const SkinnyCall& call, const Stream& stream = {});

/// skinny_product() of operands that fit, for a result of `shape` (k and n as kMostSkinnyInner and
/// kMostSkinnyColumns allow): nothing is checked again.
Array run_skinny(SkinnyCall call, const Shape& shape, const Stream& stream);

}  // namespace kernwright::kernels
