// Numbers of the host as operands: they travel as parameters of the kernel.
#pragma once

#include "base/scalar_type.h"
#include "kernels_src/elementwise/promotion.h"

#include <complex>
#include <cstdint>

namespace kernwright::kernels {

/// A number with a type of its own, or a weak one, which takes the type of the arrays beside it.
struct ScalarOperand {
  enum class Kind : std::uint8_t { integer, real, complex };
  Kind kind = Kind::integer;
  Weak weak = Weak::none;
  ScalarType type = ScalarType::boolean;  ///< when not weak
  bool negative = false;                  ///< of an integer, whose two's complement `bits` are
  bool huge = false;                      ///< an integer beyond 64 bits; `real` is near it
  std::uint64_t bits = 0;
  double real = 0, imaginary = 0;

  static ScalarOperand of(bool value) noexcept;
  static ScalarOperand of(std::int64_t value) noexcept;  ///< weak, as those below
  static ScalarOperand of(double value) noexcept;
  static ScalarOperand of(std::complex<double> value) noexcept;

  bool is_zero() const noexcept;
  double as_double() const noexcept;
  /// Whether the value of an integer is one of `type`, an integer type or bool.
  bool fits(ScalarType integer_type) const noexcept;
};

/// Writes `number` as `type`, at most 16 bytes. Reals are rounded to nearest, ties to even, and
/// become infinite beyond the range. To bool: whether it is not 0. Throws ArgumentRangeError for an
/// integer outside of an integer `type`.
void encode(const ScalarOperand& number, ScalarType type, void* to);

}  // namespace kernwright::kernels
