// Conversion of arrays between the element types.
#pragma once

#include "array/array.h"
#include "base/scalar_type.h"
#include "core/stream.h"

namespace kernwright::kernels {

/// A row-major array of its own memory with the elements of `array` (any strides) as `type`, by the
/// rules of NumPy's astype, and of ml_dtypes 0.7 for bfloat16 and the 8-bit floats:
/// - integers wrap around; to bool, everything but 0 is true (NaN too);
/// - numbers are rounded to floats once, to nearest, ties to even. What is too large becomes
///   infinity, in float8_e4m3fn NaN. A NaN stays a quiet NaN, of its sign unless it comes from
///   float64;
/// - floating to integer drops the fraction. NaN and what is out of range become what the x86
///   instructions give: the lowest int32 wrapped to 8, 16 and 32 bits, the lowest int64 for uint32
///   (wrapped) and 64 bits; NumPy leaves these undefined;
/// - complex to real drops the imaginary part.
/// The same type makes a copy. Queued on `stream` (empty: the device's legacy stream); returns
/// before it is done. Throws CompileError, OutOfMemory, DriverError.
Array cast(const Array& array, ScalarType type, const Stream& stream = {});

}  // namespace kernwright::kernels
