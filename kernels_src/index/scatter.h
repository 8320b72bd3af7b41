// Elements at positions that other arrays hold: writing and adding to them.
#pragma once

#include "kernels_src/index/gather.h"

namespace kernwright::kernels {

/// Whether two positions may name one place. With `may_repeat` the last of them wins; `never` is a
/// promise of the caller.
///
/// Each place has a number: that of the last position that names it, found with atomicMax(). Where
/// places are not many more than positions, a walk over the places then reads what each is to hold:
/// two passes in random order, over the numbers and the values. Else the positions look up whether
/// they are the last, and write. Sorting the positions takes more passes than either.
enum class Repeats : std::uint8_t { may_repeat, never };

/// The place selected from `x` by IndexedAxes becomes `values`. Those have the selection's shape,
/// the type of `x`, and any strides. Negative positions count from the end; beyond the ends nothing
/// is written. The result is the same each time. Queued on `stream`. Throws InvalidArgument where
/// arrays do not fit, or `x` is read-only or repeats elements.
void put_at(const Array& x, const IndexedAxes& at, const Array& values, Repeats repeats,
            const Stream& stream = {});
/// The same, but adds, in the order of the positions. Rounding is as in a loop over them in the
/// type for computing (float for narrower floats). Not for bool.
void add_at(const Array& x, const IndexedAxes& at, const Array& values, const Stream& stream = {});

/// x[i, index[i, j, k], k] = values[i, j, k] (here for axis 1): torch's scatter_. `values` has the
/// shape of `index`, whose extents are limited as gather() says. Otherwise as put_at().
void scatter(const Array& x, int axis, const Array& index, const Array& values, Repeats repeats,
             const Stream& stream = {});
void scatter_add(const Array& x, int axis, const Array& index, const Array& values,
                 const Stream& stream = {});

}  // namespace kernwright::kernels
