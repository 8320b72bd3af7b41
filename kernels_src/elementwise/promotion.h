// Type promotion: NumPy's table, with the rows of ml_dtypes 0.7 for bfloat16 and the 8-bit
// floats. Earlier versions of ml_dtypes raise for some of these pairs.
#pragma once

#include "base/scalar_type.h"

#include <cstdint>
#include <span>

namespace kernwright::kernels {

/// The type that values of both go into: float32 for int16 and bfloat16, float64 for int32 and
/// bfloat16.
ScalarType promote(ScalarType a, ScalarType b) noexcept;

/// Numbers of Python: a number takes the type of the arrays beside it where the type has its kind.
enum class Weak : std::uint8_t { none, integer, real, complex };
/// The type of an array of `type` and a weak number: float32 and a real stay float32, int32 and a
/// real become float64, a float and a complex number the complex type of equal width.
ScalarType promote(ScalarType type, Weak number) noexcept;
/// The type of a weak number without an array: int64; the default real type, float32 unless it was
/// set; the complex type of the default real type's width. `number` is not Weak::none.
ScalarType default_type(Weak number) noexcept;
/// Sets the default real type, for all threads. Throws ArgumentError for a type that is none of
/// float16, bfloat16, float32 and float64.
void set_default_real(ScalarType type);

/// Whether every value of `from` is one of `to`, as NumPy's "safe".
bool can_cast(ScalarType from, ScalarType to) noexcept;
/// Whether the step from `from` loses digits alone, as NumPy's "same_kind". An operation may store
/// into an array of type `to`.
bool can_cast_same_kind(ScalarType from, ScalarType to) noexcept;

}  // namespace kernwright::kernels
