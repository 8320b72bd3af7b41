// Type promotion: NumPy's table, with ml_dtypes' rows for bfloat16 and the 8-bit floats.
#pragma once

#include "base/scalar_type.h"

#include <cstdint>
#include <optional>
#include <span>

namespace kernwright::kernels {

/// The type that values of both go into; nothing where NumPy has none (bfloat16 and int32).
std::optional<ScalarType> find_promotion(ScalarType a, ScalarType b) noexcept;
/// The same. Throws ArgumentError with both names where there is none.
ScalarType promote(ScalarType a, ScalarType b);

/// Numbers of Python: they take the type of the arrays beside them where that has their kind.
enum class Weak : std::uint8_t { none, integer, real, complex };
/// `type` with such a number beside it: float32 and a real stay float32, int32 and a real become
/// float64, a float and a complex the complex type of its width.
ScalarType promote(ScalarType type, Weak number) noexcept;
/// The type of such a number alone: int64; the default real type, float32 unless it was set; the
/// complex type of its width. `number` is not Weak::none.
ScalarType default_type(Weak number) noexcept;
/// Sets the default real type, for all threads. Throws ArgumentError for a type that is none of
/// float16, bfloat16, float32 and float64.
void set_default_real(ScalarType type);

/// Whether every value of `from` is one of `to`, as NumPy's "safe".
bool can_cast(ScalarType from, ScalarType to) noexcept;
/// Whether the step from `from` loses digits only, as NumPy's "same_kind". An operation may store
/// into an array of such a type.
bool can_cast_same_kind(ScalarType from, ScalarType to) noexcept;

}  // namespace kernwright::kernels
