// Rounding to any format in any mode, with integer arithmetic: the exact, slow path.
#pragma once

#include "sim/numeric/formats.h"
#include "sim/numeric/rounding_mode.h"

#include <bit>
#include <cstdint>

namespace kernwright::sim::KW_SIM_NS::numeric {

/// Steps after rounding.
struct Finish {
  bool satfinite = false;  ///< overflow and infinity give the largest finite number
  bool relu = false;       ///< negative numbers and -0 give +0
};

/// Does rounding away the bits `rest` (of `half` weight one half) go up in magnitude?
[[gnu::always_inline]] inline bool rounds_up(Rounding mode, bool negative, bool odd,
                                             std::uint64_t rest, std::uint64_t half) {
  switch (mode) {
    case Rounding::rz: return false;
    case Rounding::rm: return negative && rest != 0;
    case Rounding::rp: return !negative && rest != 0;
    case Rounding::rna: return rest >= half;
    default: return rest > half || (rest == half && odd);
  }
}

/// The encoding of (-1)^negative * significand * 2^exponent, rounded once. significand != 0.
template <typename F>
std::uint64_t round_pack(bool negative, std::uint64_t significand, int exponent, Rounding mode,
                         Finish finish = {}) {
  if (finish.relu && negative) return 0;
  const int zeros = std::countl_zero(significand);
  significand <<= zeros;
  const int top = exponent - zeros + 63;  // the value is in [2^top, 2^(top + 1))
  const int place = top < F::kMinExponent ? F::kMinExponent : top;
  int shift = 63 - F::kMantissaBits + (place - top);
  std::uint64_t kept = 0;
  std::uint64_t rest = significand;
  std::uint64_t half = std::uint64_t{1} << 63;
  if (shift > 64) {
    rest = 1;
  } else if (shift < 64) {
    kept = significand >> shift;
    half = std::uint64_t{1} << (shift - 1);
    rest = significand & (half * 2 - 1);
  }
  kept += rounds_up(mode, negative, (kept & 1) != 0, rest, half) ? 1 : 0;
  std::uint64_t magnitude = F::kInfinity;
  const int biased = place + F::kBias - 1;
  const bool huge = biased >= (1 << F::kExponentBits);
  if (!huge) magnitude = (static_cast<std::uint64_t>(biased) << F::kMantissaBits) + kept;
  if (huge || magnitude > F::kMax) {
    const bool stays_finite = mode == Rounding::rz || (mode == Rounding::rm && !negative) ||
                              (mode == Rounding::rp && negative);
    magnitude = finish.satfinite || stays_finite || F::kInfinity == 0 ? F::kMax : F::kInfinity;
  }
  return (magnitude | (std::uint64_t{negative} << F::kSignShift)) << F::kShift;
}

/// `value` in format F. NaN gives the format's own NaN.
template <typename F>
std::uint64_t encode(double value, Rounding mode, Finish finish = {}) {
  const auto bits = std::bit_cast<std::uint64_t>(value);
  const bool negative = (bits >> 63) != 0;
  const int exponent = static_cast<int>(bits >> 52 & 0x7ff);
  const std::uint64_t mantissa = bits & ((std::uint64_t{1} << 52) - 1);
  if (exponent == 0x7ff) {
    if (mantissa != 0) return F::kNan << F::kShift;
    if (finish.relu && negative) return 0;
    const bool keep = !finish.satfinite && F::kInfinity != 0;
    return ((keep ? F::kInfinity : F::kMax) | (std::uint64_t{negative} << F::kSignShift))
           << F::kShift;
  }
  if (exponent == 0 && mantissa == 0) {
    const bool keep_sign = negative && !finish.relu;
    return std::uint64_t{keep_sign} << (F::kSignShift + F::kShift);
  }
  if (exponent == 0) return round_pack<F>(negative, mantissa, -1074, mode, finish);
  return round_pack<F>(negative, mantissa | std::uint64_t{1} << 52, exponent - 1075, mode, finish);
}

/// A NaN of double in format F as GPUs narrow it: quiet, with its sign and the top of its payload.
template <typename F>
std::uint64_t narrow_nan(double value) {
  const auto bits = std::bit_cast<std::uint64_t>(value);
  const std::uint64_t payload =
      (bits >> (52 - F::kMantissaBits)) & ((std::uint64_t{1} << F::kMantissaBits) - 1);
  return (bits >> 63) << F::kSignShift | F::kInfinity | std::uint64_t{1} << (F::kMantissaBits - 1) |
         payload;
}

/// A 64-bit integer in format F.
template <typename F>
std::uint64_t encode_integer(bool negative, std::uint64_t magnitude, Rounding mode) {
  if (magnitude == 0) return 0;
  return round_pack<F>(negative, magnitude, 0, mode);
}

/// The value of an encoding, exactly; NaN gives a quiet NaN. Not for F64: its encoding is the
/// value.
template <typename F>
double decode(std::uint64_t bits) {
  bits >>= F::kShift;
  const bool negative = (bits >> F::kSignShift & 1) != 0;
  const std::uint64_t magnitude = bits & ((std::uint64_t{1} << F::kSignShift) - 1);
  std::uint64_t result = 0;
  if (magnitude > F::kMax) {
    result = magnitude == F::kInfinity ? 0x7ff0000000000000 : 0x7ff8000000000000;
  } else if (magnitude >> F::kMantissaBits == 0) {
    constexpr int kUnit = F::kMinExponent - F::kMantissaBits;  // 2^kUnit is the smallest step
    constexpr double kStep = std::bit_cast<double>(static_cast<std::uint64_t>(kUnit + 1023) << 52);
    result = std::bit_cast<std::uint64_t>(static_cast<double>(magnitude) * kStep);
  } else {
    result = (magnitude << (52 - F::kMantissaBits)) +
             (static_cast<std::uint64_t>(1023 - F::kBias) << 52);
  }
  return std::bit_cast<double>(result | std::uint64_t{negative} << 63);
}

}  // namespace kernwright::sim::KW_SIM_NS::numeric
