// Arrays joined along an axis.
#pragma once

#include "array/array.h"
#include "core/stream.h"

#include <vector>

namespace kernwright::kernels {

/// The arrays one after the other along `axis`, which counts from the end when negative; each may
/// have any strides. Queued on `stream` (empty: the device's legacy stream). Throws InvalidArgument
/// for no array, for types, devices or extents of other axes that differ.
Array concat(const std::vector<Array>& arrays, int axis, const Stream& stream = {});

}  // namespace kernwright::kernels
