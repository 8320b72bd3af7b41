// Rounds to and reads small floats by their exponent and mantissa.
#include "base/small_float.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>

namespace kernwright {
namespace {

struct FloatFormat {
  int exponent_bits;
  int mantissa_bits;
  bool finite_only;  ///< no infinity, and one NaN pattern: all ones
};

FloatFormat find_format(ScalarType type) noexcept {
  switch (type) {
    case ScalarType::float16:
      return {5, 10, false};
    case ScalarType::bfloat16:
      return {8, 7, false};
    case ScalarType::float8_e5m2:
      return {5, 2, false};
    default:
      return {4, 3, true};  // float8_e4m3fn
  }
}

template <typename T>
T load(const void* from) noexcept {
  T value;
  std::memcpy(&value, from, sizeof value);
  return value;
}

/// `overflow`: a finite value is beyond the range.
std::uint32_t encode_bits(double value, FloatFormat layout, bool& overflow) noexcept {
  const auto [exponent_bits, mantissa_bits, finite_only] = layout;
  overflow = false;
  const std::uint32_t sign = std::uint32_t{std::signbit(value)} << (exponent_bits + mantissa_bits);
  const std::uint32_t all_ones = (1U << exponent_bits) - 1;
  const std::uint32_t infinity = all_ones << mantissa_bits;
  const std::uint32_t nan =
      finite_only ? infinity | ((1U << mantissa_bits) - 1) : infinity | (1U << (mantissa_bits - 1));
  if (std::isnan(value)) return sign | nan;
  if (std::isinf(value)) return sign | (finite_only ? nan : infinity);
  const int bias = (1 << (exponent_bits - 1)) - 1;
  int exponent = 0;
  std::frexp(value, &exponent);  // |value| = m * 2^exponent with m in [0.5, 1)
  // Subnormal numbers share the exponent of the smallest normal one.
  const int scale = std::max(exponent - 1, 1 - bias) - mantissa_bits;
  const double units = std::nearbyint(std::ldexp(std::fabs(value), -scale));
  // Units carry the hidden bit of a normal number, so that adding its exponent carries over into
  // the next one when rounding went up to a power of two.
  auto bits = static_cast<std::uint32_t>(units);
  if (value != 0 && exponent - 1 >= 1 - bias) {
    const std::int64_t biased = std::int64_t{exponent} - 1 + bias - 1;
    if (biased > static_cast<std::int64_t>(all_ones)) {
      overflow = true;
      return sign | (finite_only ? nan : infinity);
    }
    bits += static_cast<std::uint32_t>(biased) << mantissa_bits;
  }
  overflow = bits >= (finite_only ? nan : infinity);
  if (overflow) bits = finite_only ? nan : infinity;
  return sign | bits;
}

}  // namespace

bool encode_small_float(double value, ScalarType type, void* to) noexcept {
  bool overflow = false;
  const std::uint32_t bits = encode_bits(value, find_format(type), overflow);
  std::memcpy(to, &bits, scalar_size(type));  // little endian
  return !overflow;
}

double decode_small_float(ScalarType type, const void* from) noexcept {
  const FloatFormat layout = find_format(type);
  const std::uint32_t bits =
      scalar_size(type) == 1 ? load<std::uint8_t>(from) : load<std::uint16_t>(from);
  const std::uint32_t all_ones = (1U << layout.exponent_bits) - 1;
  const std::uint32_t mantissa_mask = (1U << layout.mantissa_bits) - 1;
  const std::uint32_t mantissa = bits & mantissa_mask;
  const std::uint32_t exponent = bits >> layout.mantissa_bits & all_ones;
  const double sign = (bits >> (layout.exponent_bits + layout.mantissa_bits) & 1) != 0 ? -1.0 : 1.0;
  const int bias = (1 << (layout.exponent_bits - 1)) - 1;
  if (exponent == all_ones && (!layout.finite_only || mantissa == mantissa_mask)) {
    const bool is_infinite = !layout.finite_only && mantissa == 0;
    return is_infinite ? sign * std::numeric_limits<double>::infinity()
                       : std::numeric_limits<double>::quiet_NaN();
  }
  const std::uint32_t units = exponent == 0 ? mantissa : mantissa + mantissa_mask + 1;
  const int power = (exponent == 0 ? 1 : static_cast<int>(exponent)) - bias - layout.mantissa_bits;
  return sign * std::ldexp(static_cast<double>(units), power);
}

}  // namespace kernwright
