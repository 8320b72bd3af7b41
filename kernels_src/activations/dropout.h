// Dropout without a stored mask.
#pragma once

#include "array/array.h"
#include "core/stream.h"
#include "kernels_src/random/random_state.h"

namespace kernwright::kernels {

/// Every element is 0 with chance `p`, else multiplied by 1 / (1 - p). Whether element i
/// (row-major) stays depends on i, the seed and the offset alone: an equal call on the gradient is
/// the backward. Random bits: Philox4x32-10, counter i / 4, sequence `offset`, word i % 4; below p
/// * 2^32 the element becomes 0. A call uses one offset; the counter, if any, is read when the
/// kernel runs, and stays. Real floats of any shape and strides. Throws ArgumentError for further
/// types, InvalidArgument for p outside [0, 1] and for an invalid counter.
Array dropout(const Array& x, double p, const RandomState& state, const Stream& stream = {});

}  // namespace kernwright::kernels
