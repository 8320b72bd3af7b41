// Reference arithmetic for the number formats: values by ldexp, rounding by search in a sorted
// list. Shares nothing with runtime/sim/numeric.
#pragma once

#include "sim/ptx/types.h"

#include <algorithm>
#include <cfloat>
#include <cmath>
#include <cstdint>
#include <vector>

namespace kernwright::sim::testing {

#if LDBL_MANT_DIG >= 113
using Wide = long double;
#else
__extension__ using Wide = __float128;
#endif

/// A format of at most 16 bits, as numbers.
struct SmallFormat {
  int exponent_bits, mantissa_bits;
  bool has_infinity;
  std::uint32_t largest, nan;
  int bias() const { return (1 << (exponent_bits - 1)) - 1; }
  int sign_bit() const { return exponent_bits + mantissa_bits; }
};

inline constexpr SmallFormat kF16{5, 10, true, 0x7bff, 0x7fff};
inline constexpr SmallFormat kBF16{8, 7, true, 0x7f7f, 0x7fff};
inline constexpr SmallFormat kE4M3{4, 3, false, 0x7e, 0x7f};
inline constexpr SmallFormat kE5M2{5, 2, true, 0x7b, 0x7f};

/// Value of a finite encoding.
inline double small_value(const SmallFormat& format, std::uint32_t bits) {
  const std::uint32_t magnitude = bits & ((1u << format.sign_bit()) - 1);
  const int exponent = static_cast<int>(magnitude >> format.mantissa_bits);
  const auto mantissa = static_cast<double>(magnitude & ((1u << format.mantissa_bits) - 1));
  const double unit = std::ldexp(1.0, -format.mantissa_bits);
  const double value = exponent == 0 ? std::ldexp(mantissa * unit, 1 - format.bias())
                                     : std::ldexp(1 + mantissa * unit, exponent - format.bias());
  return (bits >> format.sign_bit() & 1) != 0 ? -value : value;
}

/// All magnitudes from 0 to the largest finite one and, last, where the next would be.
inline std::vector<double> magnitudes(const SmallFormat& format) {
  std::vector<double> values;
  for (std::uint32_t bits = 0; bits <= format.largest; ++bits) {
    values.push_back(small_value(format, bits));
  }
  values.push_back(2 * values.back() - values[values.size() - 2]);
  return values;
}

struct SmallRounder {
  explicit SmallRounder(const SmallFormat& which) : format(which), values(magnitudes(which)) {}
  SmallFormat format;
  std::vector<double> values;

  /// Rounds a finite value that is not NaN.
  std::uint32_t round(Wide x, ptx::Rounding mode, bool satfinite,
                      bool negative_zero = false) const {
    const bool negative = x < 0 || (x == 0 && negative_zero);
    const Wide size = negative ? -x : x;
    const std::uint32_t sign = negative ? 1u << format.sign_bit() : 0;
    const auto top = static_cast<std::uint32_t>(values.size() - 1);  // stands for infinity
    if (size >= Wide(values.back())) return sign | overflow(mode, negative, satfinite);
    const auto above = std::upper_bound(values.begin(), values.end(), size,
                                        [](Wide a, double b) { return a < Wide(b); });
    const auto low = static_cast<std::uint32_t>(above - values.begin() - 1);
    const Wide down = size - Wide(values[low]), up = Wide(values[low + 1]) - size;
    std::uint32_t result = low;
    if (down != 0) result += goes_up(mode, negative, down, up, low) ? 1 : 0;
    if (result == top) return sign | overflow(mode, negative, satfinite);
    return sign | result;
  }

 private:
  static bool goes_up(ptx::Rounding mode, bool negative, Wide down, Wide up, std::uint32_t low) {
    using ptx::Rounding;
    if (mode == Rounding::rz) return false;
    if (mode == Rounding::rm) return negative;
    if (mode == Rounding::rp) return !negative;
    if (down != up) return up < down;
    return mode == Rounding::rna || (low & 1) != 0;
  }
  std::uint32_t overflow(ptx::Rounding mode, bool negative, bool satfinite) const {
    using ptx::Rounding;
    const bool finite = satfinite || !format.has_infinity || mode == Rounding::rz ||
                        (mode == Rounding::rm && !negative) || (mode == Rounding::rp && negative);
    return finite ? format.largest : format.largest + 1;
  }
};

}  // namespace kernwright::sim::testing
