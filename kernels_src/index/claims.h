// Writing single elements at positions that may repeat, in one pass over them.
#pragma once

#include "array/array.h"

#include <vector>

namespace kernwright::kernels {

/// Whether put_claims() takes them: elements of at most 4 bytes in aligned memory, values without
/// gaps, fewer than 2^32 - 1.
bool can_claim(const Array& x, const Array& values);

/// Each place of `x` that positions name gets the value of the last of them: values[i] is for
/// positions[i], neither has gaps. The positions count the places of `axes` row-major, in their
/// order; `x` has one element along all other axes. Negative ones count from the end, others
/// beyond an end write nothing. Takes 8 bytes for each place.
void put_claims(const Array& x, const std::vector<int>& axes, const Array& values,
                const Array& positions, const Stream& on);

}  // namespace kernwright::kernels
