// Finds the elements other than 0, and the elements chosen by a mask. Their number is known on the
// device only: each function here waits for the work of its stream and copies counts (at most 8 KB)
// to the host, the only way to the shape of the result. While the stream is being captured they
// throw CaptureError.
#pragma once

#include "kernels_src/sort/rows.h"

namespace kernwright::kernels {

/// Positions of the elements of `array` (any strides, any type) other than 0, counted row-major:
/// int64, rising. Two launches: blocks count their chunks, then write after the blocks before them.
/// Throws CaptureError, CompileError, OutOfMemory, DriverError.
Array flatnonzero(const Array& array, const Stream& stream = {});

/// The coordinates of the same elements: int64 of shape (ndim, count), or (count, ndim) with
/// `by_element`. An array without dimensions has none: the shape is (0, count).
Array nonzero(const Array& array, bool by_element = false, const Stream& stream = {});

/// array[mask]: the elements, or with a mask of fewer dimensions the parts, where the boolean
/// `mask` is true, row-major; its shape must equal the first dimensions of `array`. The result has
/// the shape (count, rest of the dimensions). Throws InvalidArgument with both shapes,
/// ArgumentError for a mask of another type, and the errors of flatnonzero().
Array compress(const Array& array, const Array& mask, const Stream& stream = {});

}  // namespace kernwright::kernels
