// Arrays joined along an axis.
#pragma once

#include "array/array.h"
#include "core/stream.h"

#include <vector>

namespace kernwright::kernels {

/// The arrays one after the other along `axis` (negative: counted from the end); each may have any
/// strides. Queued on `stream` (empty: the device's legacy stream). Throws InvalidArgument for no
/// array, and for different types, devices or extents of other axes.
Array concat(const std::vector<Array>& arrays, int axis, const Stream& stream = {});

}  // namespace kernwright::kernels
