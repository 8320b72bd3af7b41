// f16, bf16, tf32 and 8-bit floats to and from float and double without branches, so that loops
// over lanes vectorise. Rounding is to nearest even; NaN becomes the format's own NaN.
#pragma once

#include "sim/numeric/formats.h"

#include <bit>
#include <cstdint>
#include <type_traits>

namespace kernwright::sim::KW_SIM_NS::numeric {

/// Exact; a NaN keeps its payload.
[[gnu::always_inline]] inline float f16_to_f32(std::uint16_t bits) {
  const std::uint32_t magnitude = (bits & 0x7fffu) << 13;
  // Moving the exponent by a multiplication also normalises subnormals.
  const float scaled = std::bit_cast<float>(magnitude) * 0x1p112f;
  const std::uint32_t special = magnitude >= 0x0f800000u ? 0x7f800000u : 0u;
  const std::uint32_t sign = (bits & 0x8000u) << 16;
  return std::bit_cast<float>(std::bit_cast<std::uint32_t>(scaled) | special | sign);
}

/// To a format of 16 bits in one rounding, from float or double: for a sum too precise for f32.
template <typename F, typename T>
[[gnu::always_inline]] inline std::uint16_t narrow(T value) {
  using From = std::conditional_t<sizeof(T) == 8, F64, F32>;
  using Bits = std::conditional_t<sizeof(T) == 8, std::uint64_t, std::uint32_t>;
  constexpr int kMantissa = From::kMantissaBits, kDropped = kMantissa - F::kMantissaBits;
  constexpr Bits kRebias = From::kBias - F::kBias;  // of the exponent
  constexpr Bits kSmallest = (kRebias + 1) << kMantissa;
  constexpr Bits kTooLarge = (kRebias + (1 << F::kExponentBits) - 1) << kMantissa;
  // A sum with this one is a multiple of the step of F's subnormals, rounded by the hardware.
  constexpr Bits kMagic = Bits{From::kBias + F::kMinExponent + kDropped} << kMantissa;
  const auto bits = std::bit_cast<Bits>(value);
  const Bits magnitude = bits << 1 >> 1;
  const Bits up = (Bits{1} << (kDropped - 1)) - 1 + (magnitude >> kDropped & 1);
  const Bits normal = (magnitude + up - (kRebias << kMantissa)) >> kDropped;
  const Bits tiny =
      std::bit_cast<Bits>(std::bit_cast<T>(magnitude) + std::bit_cast<T>(kMagic)) - kMagic;
  Bits result = magnitude < kSmallest ? tiny : normal;
  result = magnitude >= kTooLarge ? Bits{F::kInfinity} : result;
  result |= bits >> (8 * sizeof(T) - 16) & 0x8000u;
  return static_cast<std::uint16_t>(magnitude > From::kInfinity ? Bits{F::kNan} : result);
}

[[gnu::always_inline]] inline std::uint16_t f32_to_f16(float value) { return narrow<F16>(value); }
[[gnu::always_inline]] inline std::uint16_t f64_to_f16(double value) { return narrow<F16>(value); }
[[gnu::always_inline]] inline std::uint16_t f64_to_bf16(double value) {
  return narrow<BF16>(value);
}

[[gnu::always_inline]] inline float bf16_to_f32(std::uint16_t bits) {
  return std::bit_cast<float>(std::uint32_t{bits} << 16);
}

[[gnu::always_inline]] inline std::uint16_t f32_to_bf16(float value) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  const std::uint32_t rounded = (bits + 0x7fffu + (bits >> 16 & 1u)) >> 16;
  return static_cast<std::uint16_t>((bits & 0x7fffffffu) > 0x7f800000u ? 0x7fffu : rounded);
}

/// To tf32 with ties away from zero (cvt.rna). Infinity stays; NaN loses its lowest bits and
/// nothing else, as measured on GPUs, so one with a payload down there only becomes infinity.
[[gnu::always_inline]] inline std::uint32_t f32_to_tf32(float value) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  const std::uint32_t magnitude = bits & 0x7fffffffu;
  const std::uint32_t rounded = (bits + 0x1000u) & 0xffffe000u;
  return magnitude > 0x7f800000u ? bits & 0xffffe000u : rounded;
}

/// product + c, rounded to odd.
template <typename T>
[[gnu::always_inline]] inline T add_to_odd(T product, T c) {
  using Bits = std::conditional_t<sizeof(T) == 8, std::int64_t, std::int32_t>;
  const T sum = product + c;
  const T part = sum - product;
  const T error = (product - (sum - part)) + (c - part);
  const auto bits = std::bit_cast<Bits>(sum);
  // An inexact even sum has an odd neighbour on the side of the error.
  const Bits away = (error > 0) == (sum > 0) ? 1 : -1;
  const bool inexact = error > 0 || error < 0;
  const Bits step = inexact && (bits & 1) == 0 ? away : 0;
  return std::bit_cast<T>(bits + step);
}

/// a * b + c with an exact product (in double for values of 24 bits, in float for those of f16):
/// the sum is rounded to odd, so only a later rounding to a format with at least two bits less
/// counts.
[[gnu::always_inline]] inline double fused_to_odd(double a, double b, double c) {
  return add_to_odd(a * b, c);
}
[[gnu::always_inline]] inline float fused_to_odd(float a, float b, float c) {
  return add_to_odd(a * b, c);
}

}  // namespace kernwright::sim::KW_SIM_NS::numeric
