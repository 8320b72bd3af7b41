// Sums of rows by slot, in the order of the rows.
#pragma once

#include "kernels_src/index/indexed_walk.h"

namespace kernwright::kernels {

/// Adds row i of `values` to slot numbers[i] of `x`. The first axes of `values` are those of
/// `slots.numbers`; `row` walks the elements of a slot. The additions to an element are in the
/// order of i, in its type for computing, and rounded once. A stable sort of the slots brings rows
/// together. Throws InvalidArgument for bool.
void add_segments(const Array& x, const Array& values, const Slots& slots, const WalkPlan<1>& row,
                  const Stream& stream);

}  // namespace kernwright::kernels
