// Looking for elements among sorted ones.
#pragma once

#include "kernels_src/sort/rows.h"

#include <optional>

namespace kernwright::kernels {

/// The index for inserting each element of `wanted` into the rising, one-dimensional `sorted`, to
/// keep it in order: before equal ones, or after them with `right`. int64 of the shape of `wanted`.
/// NaN is above all numbers. `sorter`, int64 of the shape of `sorted`, gives the elements' order
/// (as from argsort()); an index outside counts as the nearest inside. Any strides. Queued on
/// `stream` (empty: the device's legacy stream). Throws InvalidArgument for wrong shapes and types,
/// with both, ArgumentError for complex numbers, CompileError, OutOfMemory, DriverError.
Array search_sorted(const Array& sorted, const Array& wanted, bool right,
                    const std::optional<Array>& sorter = std::nullopt, const Stream& stream = {});

/// Whether each element of `array` is in `among`: bool of the shape of `array`; the other way with
/// `invert`. NaN is in nothing. `among` is sorted first. Queued and throws as search_sorted() does.
Array is_in(const Array& array, const Array& among, bool invert, const Stream& stream = {});

}  // namespace kernwright::kernels
