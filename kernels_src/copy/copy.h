// Copies of strided arrays on their device.
#pragma once

#include "array/array.h"
#include "core/stream.h"

namespace kernwright::kernels {

/// A new row-major array of the elements of `array`, which may have any strides. Queued on `stream`
/// (empty: the device's legacy stream); returns before it is done. The memory of both may be
/// released at once; no later work gets the memory before. Throws CompileError, OutOfMemory,
/// DriverError.
Array copy(const Array& array, const Stream& stream = {});

/// Copies `from` into `to`: equal shape, type and device, any strides. Overlapping arrays are
/// copied as if `from` had been copied away first. Queued on `stream`. Throws InvalidArgument, with
/// both arrays, when the arrays do not fit, when `to` is read-only or repeats elements (stride 0).
void copy_elements(const Array& to, const Array& from, const Stream& stream = {});

/// Two copies to memory that nobody else reads or writes, by one kernel where both have long lines.
void copy_two(const Array& to, const Array& from, const Array& second_to, const Array& second_from,
              const Stream& stream);

/// Whether the byte ranges of the arrays, from first to last byte, meet.
bool may_overlap(const Array& a, const Array& b);

}  // namespace kernwright::kernels
