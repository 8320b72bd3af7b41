// Norms of rows: RMS, layer, L2, and those of groups of channels.
#pragma once

#include "array/array.h"
#include "base/scalar_type.h"
#include "core/stream.h"

#include <cstdint>
#include <optional>

namespace kernwright::kernels {

/// x_hat of a row of n elements: x / sqrt(mean(x^2) + eps), (x - mean(x)) / sqrt(variance(x) + eps)
/// with the variance over n, x / max(sqrt(sum(x^2)), eps).
enum class NormKind { rms, layer, l2 };

struct NormOptions {
  NormKind kind = NormKind::rms;
  double eps = 1e-6;
  /// y = x_hat * weight + bias. They have the shape of the last axes of x, which are then a row;
  /// without a weight a row is the last axis. Of one type, any of the norms' types.
  std::optional<Array> weight = std::nullopt;
  std::optional<Array> bias = std::nullopt;
  /// An array of the shape and type of x: x + residual, rounded to that type, is normalised.
  std::optional<Array> residual = std::nullopt;
  /// int8 or float8_e4m3fn: y = result * scale, where a row's scale is max(|y|) / 127 or / 448.
  /// Rows of at most 32768 elements (float64: 16384), fewer where the weights are not aligned.
  std::optional<ScalarType> quantized = std::nullopt;
  /// Rows are groups of channels of [batch, channels, ...]; weight and bias have an element for
  /// each channel. -1: each channel is a group. 0: rows are the last axes.
  std::int64_t groups = 0;
  /// The targets of the results, as contiguous_result() takes them; results without a target are
  /// new arrays. Targets lie apart from each other and from all arguments, with two exceptions:
  /// `sum`, and `out` unless it is quantised, may be x or the residual itself.
  std::optional<Array> out = std::nullopt, scales = std::nullopt, sum = std::nullopt;
};

struct NormResult {
  Array out;
  std::optional<Array> scales;  ///< float32, the shape of x without the rows' axes
  std::optional<Array> sum;     ///< x + residual
};

/// Normalises rows of float16, bfloat16, float32 (all computed in float32) or float64; any strides,
/// contiguous results. The variance is the mean of (x - mean)^2, with the mean known first.
///
/// Rows of up to 32768 elements stay in registers. Longer ones, and few long ones, are shared by
/// blocks in two launches, which read x twice. The order of all additions is fixed.
///
/// Queued on `stream` (empty: the legacy stream). Throws InvalidArgument for other types, shapes
/// that do not match and what cannot be combined, CompileError, OutOfMemory, DriverError.
NormResult norm(const Array& x, const NormOptions& options, const Stream& stream = {});

/// The RMS norm in front of a product: a weight (k,) of the type of x (..., k).
struct RowNorm {
  Array weight;
  double eps = 1e-6;
  Array normalised(const Array& x, const Stream& stream) const;
};

/// As the kernels see a norm: contiguous (batch * groups) rows of n elements. Used by the
/// gradients too. Throws InvalidArgument, with `what`, where x, weight and bias do not match.
struct NormShape {
  std::int64_t rows = 0, n = 0;
  int row_axes = 1;                                   ///< the last axes of x that are a row
  std::int64_t groups = 1, per_row = 1, spatial = 1;  ///< of channels
  bool channels = false;                              ///< whether weights belong to channels
};
NormShape norm_shape(const Array& x, const std::optional<Array>& weight,
                     const std::optional<Array>& bias, std::int64_t groups, const char* what);
const char* norm_name(NormKind kind, std::int64_t groups) noexcept;

}  // namespace kernwright::kernels
