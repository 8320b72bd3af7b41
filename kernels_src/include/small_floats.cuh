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

/// A float that a second rounding, to at most 22 bits, makes what one rounding of `value` gives:
/// inexact values are cut and get an odd last bit (Boldo and Melquiond, "Emulation of FMA and
/// correctly rounded sums: proved algorithms using rounding to odd", 2008).
__device__ __forceinline__ float round_to_odd(double value) {
  if (value != value) return static_cast<float>(value);
  const float cut = __double2float_rz(value);
  return static_cast<double>(cut) == value ? cut : __uint_as_float(__float_as_uint(cut) | 1u);
}
__device__ __forceinline__ float round_to_odd(float value) { return value; }
__device__ __forceinline__ float round_to_odd(bool value) { return static_cast<float>(value); }
__device__ __forceinline__ float round_to_odd(long long value) {
  const float cut = __ll2float_rz(value);
  const bool exact = static_cast<long long>(cut) == value;
  return exact ? cut : __uint_as_float(__float_as_uint(cut) | 1u);
}
__device__ __forceinline__ float round_to_odd(unsigned long long value) {
  const float cut = __ull2float_rz(value);
  const bool exact = static_cast<unsigned long long>(cut) == value;
  return exact ? cut : __uint_as_float(__float_as_uint(cut) | 1u);
}

}  // namespace kernwright
