// Evenly spaced numbers.
#pragma once

#include "array/array.h"
#include "core/stream.h"

#include <cstdint>
#include <optional>

namespace kernwright::kernels {

/// Sets element i of `to`, contiguous and of floats, to start + step * i, computed in double and
/// rounded once; the last element to `last` if given. Queued on `stream` (empty: the device's
/// legacy stream). Throws InvalidArgument for another array.
void fill_sequence(const Array& to, double start, double step, std::optional<double> last,
                   const Stream& stream = {});

/// Fills an array of integers, which wrap around.
void fill_sequence(const Array& to, std::int64_t start, std::int64_t step,
                   const Stream& stream = {});

}  // namespace kernwright::kernels
