// Sorting along an axis.
#pragma once

#include "kernels_src/sort/rows.h"

namespace kernwright::kernels {

/// The elements of `array` (any strides, any real type) in rising order along `axis`, falling if
/// `descending`; a row-major array of the same shape and type. Stable both ways: equal elements
/// keep their order. -0 and 0 are equal, NaN is above all numbers: last, or first if descending.
///
/// Rows of up to 1024 elements are sorted by a bitonic network, many in a block; of up to 4096 by
/// one block, digit by digit of 8 bits; longer ones by several blocks (radix_sort.h), in a launch
/// for each byte of the type and two before. The result does not depend on the
/// split. Queued on `stream` (empty: the device's legacy stream). Throws InvalidArgument for an
/// axis outside, ArgumentError for complex numbers, CompileError, OutOfMemory, DriverError.
Array sort(const Array& array, int axis, bool descending, const Stream& stream = {});

/// The original index in its row of each element of sort(): int64, of the shape of `array`.
Array argsort(const Array& array, int axis, bool descending, const Stream& stream = {});

/// Both of it, for little more than either.
Ordered sort_and_index(const Array& array, int axis, bool descending, const Stream& stream = {});

/// The first `keep` of each sorted row of at most kShortRow elements.
inline constexpr std::int64_t kShortRow = 1024;
Ordered sort_short(const Rows& rows, std::int64_t keep, bool descending, const Stream& stream = {});

}  // namespace kernwright::kernels
