// Floats of 2 and 1 bytes, which C++ has no types for.
#pragma once

#include "base/scalar_type.h"

namespace kernwright {

/// Writes the float16, bfloat16 or float8 number nearest to `value` (ties to even), in 2 or 1
/// bytes. False where a finite value is beyond its range: then infinity, or NaN where the type has
/// none.
bool encode_small_float(double value, ScalarType type, void* to) noexcept;

/// The value of the 2 or 1 bytes of a float16, bfloat16 or float8 number.
double decode_small_float(ScalarType type, const void* from) noexcept;

}  // namespace kernwright
