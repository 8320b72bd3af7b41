// Sorting rows that no block holds.
#pragma once

#include "kernels_src/sort/rows.h"

namespace kernwright::kernels {

/// Sorts rows, none of them empty, by several blocks each into the values or indices of `to`, or
/// both; see sort.h. Allocations use `stream`; `on` is not empty.
///
/// One launch counts the digits of 8 bits of all keys; then one for each byte of the type moves the
/// elements. Each tile of a row tells the others its count of each digit. It adds up the counts
/// before it, back to the nearest tile with known places. The places are sums of integers, the same
/// in every run. (A. Adinets, D. Merrill, "Onesweep: A Faster Least Significant Digit Radix Sort
/// for GPUs", 2022.) A launch leaves rows alone if they have only one digit at its place. Temporary
/// memory: as much as another `to`, with indices of 32 bits up to 2^30 elements a row, and 2 KB for
/// each tile.
void radix_sort(const Rows& rows, bool descending, const Ordered& to, const Stream& stream,
                const Stream& on);

}  // namespace kernwright::kernels
