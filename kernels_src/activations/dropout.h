// Dropout without a stored mask.
#pragma once

#include "array/array.h"
#include "core/stream.h"

#include <cstdint>

namespace kernwright::kernels {

/// Every element is 0 with chance `p`, else multiplied by 1 / (1 - p). Whether element i
/// (row-major) stays depends on i, `seed` and `offset` alone: applied to the gradient, the same
/// call is the backward. Random bits: Philox4x32-10, counter i / 4, sequence `offset`, word i % 4;
/// below p * 2^32 the element goes. Real floats of any shape and strides. Throws ArgumentError for
/// other types, InvalidArgument for p outside [0, 1].
Array dropout(const Array& x, double p, std::uint64_t seed, std::uint64_t offset,
              const Stream& stream = {});

}  // namespace kernwright::kernels
