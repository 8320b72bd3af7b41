// A number of any type, to be converted for a kernel's parameter or an array.
#pragma once

#include "base/scalar_type.h"

#include <cstddef>
#include <cstdint>
#include <string>

namespace kernwright {

/// A number. `kind` names the field with its value.
struct Number {
  enum class Kind : std::uint8_t { none, integer, huge, real, complex };
  Kind kind = Kind::none;  ///< none: not a number
  bool negative = false;   ///< of an integer: `bits` is its two's complement
  std::uint64_t bits = 0;  ///< integer: the value; huge ones do not fit 64 bits
  double real = 0;         ///< real and complex; also the value of a huge integer (may be inf)
  double imaginary = 0;

  static Number make(std::int64_t value) noexcept;
  static Number make(std::uint64_t value) noexcept;
  static Number make(double value) noexcept;
  static Number make(double real_part, double imaginary_part) noexcept;
  /// The number of that type at `from`.
  static Number read(ScalarType type, const void* from) noexcept;

  /// Integers beyond 2^53 are rounded as Python's float() does; of a complex number the real part.
  double as_double() const noexcept;
  /// Whether it is not 0; NaN is not.
  bool is_true() const noexcept;
  /// "-5", "2.5"; of a complex one "1+2j".
  std::string to_string() const;
};

/// Why a number does not go into a type.
enum class Fit : std::uint8_t { exact, wrong_kind, out_of_range };

/// Writes `number` as `type` to `to`. Integers must fit; reals are rounded to nearest even, and a
/// finite one must not become infinite; NaN and inf pass. A real is no integer, a complex no real.
Fit encode(const Number& number, ScalarType type, void* to) noexcept;

/// The same into `size` bytes, 1, 2, 4 or 8, of which no type is known: an integer of either sign.
Fit encode_untyped(const Number& number, std::size_t size, void* to) noexcept;

/// "-128 ... 127", or the largest finite value of a floating type: for messages.
std::string range_text(ScalarType type);

/// "an integer", "a bool", "a real number" or "a number": what goes into the type.
const char* number_family(ScalarType type) noexcept;

}  // namespace kernwright
