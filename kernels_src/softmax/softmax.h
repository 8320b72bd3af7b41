// Softmax along an axis, and its logarithm.
#pragma once

#include "array/array.h"
#include "base/scalar_type.h"
#include "core/stream.h"

#include <optional>

namespace kernwright::kernels {

struct SoftmaxOptions {
  bool log = false;    ///< the logarithm of softmax, without taking one of each element
  double scale = 1.0;  ///< of the elements of x
  /// An array of the shape of x; any strides, 0 too. A bool mask: elements at false count as -inf.
  /// One of the floating types below: added after scaling.
  std::optional<Array> mask = std::nullopt;
  std::optional<ScalarType> type = std::nullopt;  ///< of the result; that of x
  /// The target of the result: of the shape and the device of x, any strides, of `type` if both are
  /// given. It may share memory with x.
  std::optional<Array> out = std::nullopt;
};

/// y = exp(s - max(s)) / sum(exp(s - max(s))) along `axis`, where s = x * scale + mask. x may have
/// any strides and is float16, bfloat16, float32 (all computed in float32) or float64; y is of one
/// of these. What is +inf or NaN in a row makes it NaN, as does -inf everywhere, but with a mask
/// such a row becomes 0 (log: -inf).
///
/// Rows of up to 16384 elements stay in registers, longer ones partly in shared memory; where that
/// is too small or rows are few, several blocks share a row in two launches, which read x twice.
/// An axis other than the last is walked in columns; with a mask x is copied first. The order of
/// all additions is fixed.
///
/// Queued on `stream` (empty: the legacy stream). Throws InvalidArgument for other types or shapes
/// and for an axis out of range, CompileError, OutOfMemory, DriverError.
Array softmax(const Array& x, int axis, const SoftmaxOptions& options = {},
              const Stream& stream = {});

}  // namespace kernwright::kernels
