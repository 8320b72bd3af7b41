// The largest or smallest elements along an axis.
#pragma once

#include "kernels_src/sort/rows.h"

namespace kernwright::kernels {

/// The k largest elements of each row along `axis` (the smallest unless `largest`) and where in the
/// row they are, in order: largest first, or smallest first. Of equal elements the one with the
/// lower index comes first. NaN is above all numbers; -0 and 0 are equal. Any strides, any real
/// type; both results are row-major, with k in place of the axis' extent.
///
/// Rows of up to 1024 elements are sorted. Else a block takes 4096 elements and finds its k by
/// digits of 11 bits, the indices behind the keys (Alabi et al., Fast k-selection algorithms for
/// graphics processing units, 2012); what the blocks of a row have found is treated alike until one
/// block holds it: 2 launches for 128256 elements and k = 50. For k above 1024 rows are sorted
/// whole. Queued on `stream` (empty: the device's legacy stream). Throws InvalidArgument for an
/// axis outside or a k that is not from 0 to the extent, ArgumentError for complex numbers,
/// CompileError, OutOfMemory, DriverError.
Ordered topk(const Array& array, std::int64_t k, int axis, bool largest, const Stream& stream = {});

}  // namespace kernwright::kernels
