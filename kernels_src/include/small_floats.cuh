// float16, bfloat16 and the two 8-bit floats by bit code of our own, so that no header is needed.
#pragma once

namespace kernwright {

/// A binary format of less than 32 bits. `kFinite`: as float8_e4m3fn, no infinity and one NaN.
template <typename BitsType, int kExponentBits, int kMantissaBits, bool kFinite>
struct SmallFloat {
  using Bits = BitsType;
  static constexpr int kMantissa = kMantissaBits;
  static constexpr int kBias = (1 << (kExponentBits - 1)) - 1;
  static constexpr unsigned kSign = 1u << (kExponentBits + kMantissaBits);
  static constexpr unsigned kExponentMask = ((1u << kExponentBits) - 1) << kMantissaBits;
  /// The first code that is no number: infinity, or the only NaN of a finite format.
  static constexpr unsigned kOverflow = kFinite ? kSign - 1 : kExponentMask;
  static constexpr unsigned kNan =
      kFinite ? kSign - 1 : kExponentMask | (1u << (kMantissaBits - 1));
  Bits bits;
};

using Float16 = SmallFloat<unsigned short, 5, 10, false>;
using BFloat16 = SmallFloat<unsigned short, 8, 7, false>;
using Float8E4M3 = SmallFloat<unsigned char, 4, 3, true>;
using Float8E5M2 = SmallFloat<unsigned char, 5, 2, false>;

/// 2 to the power of `exponent`, for normal numbers.
__device__ __forceinline__ float exact_power2(int exponent) {
  return __uint_as_float(static_cast<unsigned>(exponent + 127) << 23);
}

/// Exact.
template <typename Bits, int E, int M, bool F>
__device__ __forceinline__ float to_float(SmallFloat<Bits, E, M, F> value) {
  using Format = SmallFloat<Bits, E, M, F>;
  const unsigned magnitude = value.bits & (Format::kSign - 1);
  const unsigned sign = (value.bits & Format::kSign) ? 0x80000000u : 0u;
  unsigned bits;
  if (magnitude > Format::kOverflow || (F && magnitude == Format::kNan)) {
    bits = 0x7fc00000u;
  } else if (magnitude == Format::kOverflow) {
    bits = 0x7f800000u;
  } else if (Format::kBias == 127) {
    bits = magnitude << (23 - M);  // the exponents of float: subnormals too
  } else if ((magnitude & Format::kExponentMask) == 0) {
    bits = __float_as_uint(static_cast<float>(magnitude) * exact_power2(1 - Format::kBias - M));
  } else {
    bits = (magnitude << (23 - M)) + (static_cast<unsigned>(127 - Format::kBias) << 23);
  }
  return __uint_as_float(sign | bits);
}

/// The code of `magnitude`, the bits of a float without the sign, rounded to nearest, ties to even.
template <typename Format>
__device__ __forceinline__ unsigned round_magnitude(unsigned magnitude) {
  constexpr unsigned kShift = 23 - Format::kMantissa;
  constexpr unsigned kSmallest = static_cast<unsigned>(128 - Format::kBias) << 23;
  if (Format::kBias != 127 && magnitude < kSmallest) {
    // Below the normal numbers: the addition drops all bits finer than the smallest subnormal.
    const float magic = exact_power2(1 - Format::kBias - Format::kMantissa + 23);
    return __float_as_uint(__uint_as_float(magnitude) + magic) - __float_as_uint(magic);
  }
  const unsigned rebased = magnitude - (static_cast<unsigned>(127 - Format::kBias) << 23);
  const unsigned half = (1u << (kShift - 1)) - 1;
  return (rebased + half + ((rebased >> kShift) & 1)) >> kShift;
}

/// To nearest, ties to even. Beyond the largest number: infinity, or NaN in a finite format.
template <typename Format>
__device__ __forceinline__ Format from_float(float value) {
  const unsigned bits = __float_as_uint(value);
  const unsigned magnitude = bits & 0x7fffffffu;
  unsigned code;
  if (magnitude > 0x7f800000u) {
    code = Format::kNan;
  } else {
    code = round_magnitude<Format>(magnitude);
    code = code < Format::kOverflow ? code : Format::kOverflow;
  }
  if (bits >> 31) code |= Format::kSign;
  Format result;
  result.bits = static_cast<typename Format::Bits>(code);
  return result;
}

/// float16 from double with one rounding: what float cannot tell apart is first rounded to odd.
__device__ __forceinline__ Float16 float16_from_double(double value) {
  float narrow = static_cast<float>(value);
  const double back = static_cast<double>(narrow);
  unsigned bits = __float_as_uint(narrow);
  if (back != value && value == value && (bits & 0x7fffffffu) < 0x7f800000u && (bits & 1u) == 0) {
    // Inexact with an even last bit: take the odd neighbour on the other side of the value.
    const bool away = (back < value) == (value > 0);
    bits = away ? bits + 1 : bits - 1;
    narrow = __uint_as_float(bits);
  }
  return from_float<Float16>(narrow);
}

}  // namespace kernwright
