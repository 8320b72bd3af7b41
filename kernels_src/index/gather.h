// Elements at positions that other arrays hold: reading them.
#pragma once

#include "array/array.h"
#include "core/stream.h"

#include <vector>

namespace kernwright::kernels {

/// Axes of an array (distinct, not negative) and an array of integers for each of them; the arrays
/// broadcast to one shape, whose axes stand in the result before remaining axis `position`.
struct IndexedAxes {
  std::vector<int> axes;
  std::vector<Array> indices;
  int position = 0;

  Shape common_shape()
      const;  ///< of the indices; throws InvalidArgument when they do not broadcast
  /// The shape of a selection from `x`. Throws InvalidArgument for axes missing in `x` or given
  /// twice, indices of another kind than integers or of another device, and empty axes.
  Shape result_shape(const Array& x) const;
};

/// result[a, m, b] = x[a, index[m], b] for one axis, and so on for more: NumPy's index arrays; see
/// IndexedAxes. Negative positions count from the end; those beyond an end take the nearest
/// element. `x` may have any strides. Queued on `stream` (empty: the device's legacy stream).
/// Throws as IndexedAxes::result_shape() does, OutOfMemory, DriverError.
Array take_at(const Array& x, const IndexedAxes& at, const Stream& stream = {});

/// result[i, j, k] = x[i, index[i, j, k], k] (here for axis 1), of the shape of `index`: torch's
/// gather. `index` has as many axes as `x`, none but `axis` is longer than that of `x`. Positions
/// are taken as in take_at(). Throws InvalidArgument.
Array gather(const Array& x, int axis, const Array& index, const Stream& stream = {});

}  // namespace kernwright::kernels
