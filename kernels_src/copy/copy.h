// Copies of strided arrays on their device.
#pragma once

#include "array/array.h"
#include "core/stream.h"

namespace kernwright::kernels {

/// A row-major array of its own memory with the elements of `array`, which may have any strides.
/// Queued on `stream` (empty: the device's legacy stream); returns before it is done. The memory of
/// both may be released at once, it is not reused before. Throws CompileError, OutOfMemory,
/// DriverError.
Array copy(const Array& array, const Stream& stream = {});

/// Copies `from` into `to`: the same shape, type and device, any strides. Where they overlap the
/// result is as if `from` had been copied away first. Queued on `stream`. Throws InvalidArgument,
/// with both arrays, when they do not fit, when `to` is read-only or repeats elements (stride 0).
void copy_into(const Array& to, const Array& from, const Stream& stream = {});

/// Two copies to memory that nobody else reads or writes, by one kernel where both have long lines.
void copy_both_into(const Array& to, const Array& from, const Array& second_to,
                    const Array& second_from, const Stream& stream);

/// Whether the memory from the first byte of one to its last meets that of the other.
bool may_overlap(const Array& a, const Array& b);

}  // namespace kernwright::kernels
