// Choices by weight, and rows by their numbers.
#pragma once

#include "array/array.h"
#include "core/stream.h"
#include "kernels_src/random/random_state.h"

#include <cstdint>

namespace kernwright::kernels {

/// `count` places of `weights` (float64, one axis, contiguous) with replacement, each with the
/// chance of its weight over the sum of all (running sums in float64, then a binary search): int64.
/// Weights of 0, below and NaN are never chosen; where all are, the result is n - 1. Uses the
/// offsets up to offset + count. Throws InvalidArgument.
Array choose_repeatedly(const Array& weights, std::int64_t count, const RandomState& state,
                        const Stream& stream = {});

/// Rows (along the first axis) of `array`, any strides: row i of the result is row index[i], which
/// the caller knows to be inside. `index` is int32 or int64, one axis, contiguous. Throws
/// InvalidArgument.
Array rows_by_index(const Array& array, const Array& index, const Stream& stream = {});

}  // namespace kernwright::kernels
