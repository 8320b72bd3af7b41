// Counting elements by value and by bin.
#pragma once

#include "kernels_src/sort/rows.h"

#include <optional>

namespace kernwright::kernels {

/// The lowest and the highest element (NaN is above all numbers): shape (2,), of the type of
/// `array`, which holds at least one element. Queued on `stream`. Throws InvalidArgument,
/// ArgumentError.
Array extremes(const Array& array, const Stream& stream = {});

/// How often each of 0 ... bins - 1 is among the integers or bools of `array`: int64. Other numbers
/// count nowhere. Queued on `stream` (empty: the device's legacy stream). Throws ArgumentError for
/// other types, CompileError, OutOfMemory, DriverError.
Array count_values(const Array& array, std::int64_t bins, const Stream& stream = {});

/// The sums of the `weights` (float64, as many as elements) there, in place of the counts: float64.
/// In a fixed order, so that the same call gives the same numbers.
Array sum_by_value(const Array& array, const Array& weights, std::int64_t bins,
                   const Stream& stream = {});

/// Bins of real numbers: bin i is edges[i] <= x < edges[i + 1], the last one holds its upper edge
/// too. What is outside, and NaN, counts nowhere. `edges` is float64 of one dimension and rises.
struct Bins {
  Array edges;
  /// Above 0 when all bins have the same width: how many there are in 1. Faster than a search.
  double scale = 0;
};

/// The number of elements in each bin: int64.
Array histogram(const Array& array, const Bins& bins, const Stream& stream = {});

/// The sum of the weights in each bin: float64.
Array weighted_histogram(const Array& array, const Array& weights, const Bins& bins,
                         const Stream& stream = {});

/// counts / (their sum * the width of each bin), for int64 or float64: float64.
Array density(const Array& counts, const Bins& bins, const Stream& stream = {});

}  // namespace kernwright::kernels
