// Totals of all counts before each one.
#pragma once

#include "array/array.h"
#include "core/stream.h"

#include <cstdint>

namespace kernwright::kernels {

/// Replaces each of `counts` (int64, one axis, contiguous, at least one) by the total of those
/// before it. Returns an array of one element: the total of all. Queued on `stream`.
Array running_total(const Array& counts, const Stream& stream);

/// The only element of an array of int64 on the host: waits for the work of `stream`.
std::int64_t read_number(const Array& number, const Stream& stream);

}  // namespace kernwright::kernels
