// Matrix products of every element type. Right and simple, but for products with few rows: the
// tensor cores are not used.
#pragma once

#include "array/array.h"
#include "core/stream.h"

namespace kernwright::kernels {

/// a @ b for arrays of one type on one device, of two dimensions or more: [..., m, k] times
/// [..., k, n] is [..., m, n], where the dimensions in front are broadcast. Any strides. Float
/// types below 32 bits are summed in float32; integers wrap around; bool is "or" of "and". The sums
/// run along k in order, those of few_rows_product() in one that the shapes decide, so the result
/// is the same each time. With k = 0 it is zero. Queued on `stream` (empty: the device's legacy
/// stream). Throws InvalidArgument ("Incompatible dimensions") with both shapes, for other types or
/// devices and for more than 6 dimensions in front that cannot be walked as fewer; CompileError,
/// OutOfMemory, DriverError.
Array matmul(const Array& a, const Array& b, const Stream& stream = {});

}  // namespace kernwright::kernels
