// Arrays of positions: checked, found where a mask is true, repeated.
#pragma once

#include "array/array.h"
#include "core/stream.h"

#include <cstdint>

namespace kernwright::kernels {

/// How many of the positions (any integers) lie outside [-extent, extent). Waits for the device.
std::int64_t count_outside(const Array& index, std::int64_t extent, const Stream& stream = {});

/// The row-major positions, rising, of the true elements of a bool array of any shape: int64 of
/// one axis. Their number comes from the device: waits for it. Throws InvalidArgument for another
/// type, CaptureError while the stream is captured.
Array true_positions(const Array& mask, const Stream& stream = {});

/// Row-major positions (int64) in `shape` as coordinates: row d is that of axis d.
Array split_positions(const Array& given, const Shape& shape, const Stream& stream = {});

/// Position i counts[i] times in turn: int64 of one axis. `counts` are integers along one axis,
/// none negative. Waits for the device, as the length comes from there.
Array repeat_positions(const Array& counts, const Stream& stream = {});

/// x = values wherever `mask` (bool) is true; all of one shape, `values` of the type of `x`.
/// Throws InvalidArgument where they do not fit, or `x` is read-only.
void put_where(const Array& x, const Array& mask, const Array& values, const Stream& stream = {});

}  // namespace kernwright::kernels
