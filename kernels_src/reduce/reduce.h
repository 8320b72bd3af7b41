// Reductions of arrays over any of their axes.
#pragma once

#include "array/array.h"
#include "core/stream.h"
#include "kernels_src/reduce/reduction.h"

#include <optional>
#include <vector>

namespace kernwright::kernels {

/// One call: over which axes, and how the result looks.
struct ReductionCall {
  Reduction op = Reduction::sum;
  std::optional<std::vector<int>> axes;  ///< nothing: all; negative ones count from the end
  bool keepdims = false;                 ///< the axes stay with an extent of 1
  std::optional<ScalarType> type;        ///< sum, prod, mean: elements are taken as this
  /// var and std: the correction, subtracted from the number of elements; norm_any: the order.
  double parameter = 0;
};

/// The reduction of `array`, of any strides, as an array of its own memory.
/// - Sums and products are kept in 64 bits for integers (which wrap around), in float for floats
///   below 64 bits. A thread adds up at most 64 elements, the rest is a tree of a fixed form: the
///   same array gives the same bits, and the error of a float32 sum hardly grows with its length.
/// - max, min, argmax, argmin: NaN wins, the first of equal elements counts. argmax and argmin take
///   one axis, or all: then the place in row-major order.
/// - var, std: parts around an element of their own, joined by Chan's formula: no cancellation.
/// - nansum and its kin pass over NaN; where all elements are NaN, nansum is 0, nanprod 1, the
///   others NaN.
/// - no elements: sum 0, prod 1, any false, all true, mean and var NaN, norms 0, logsumexp -inf.
/// Queued on `stream` (empty: the device's legacy stream). Throws InvalidArgument for axes outside
/// the array or named twice, for types that the reduction has no meaning for, for max, min and
/// places of no elements; CompileError, OutOfMemory, DriverError.
Array reduce(const Array& array, const ReductionCall& call, const Stream& stream = {});

/// reduce() into an existing array of the result's shape and type, any strides. Throws
/// InvalidArgument, with both arrays, when `to` does not fit.
void write_reduction(const Array& to, const Array& array, const ReductionCall& call,
                     const Stream& stream = {});

}  // namespace kernwright::kernels
