// What floating-point handlers share: flushing, saturation, NaN form, and the pairing with lane
// loops.
#pragma once

#include "sim/exec/ops/types.h"

#include <bit>
#include <cmath>
#include <cstdint>

namespace kernwright::sim::KW_SIM_NS {

inline constexpr std::uint32_t kCanonicalNan = 0x7fffffffu;

/// Single-precision results that are NaN have this one form on NVIDIA GPUs; double keeps payloads,
/// as the host does.
inline float canonical(float x) { return x != x ? std::bit_cast<float>(kCanonicalNan) : x; }
inline double canonical(double x) { return x; }

/// .ftz: subnormals become zero of the same sign.
inline float flush(float x) {
  const auto bits = std::bit_cast<std::uint32_t>(x);
  return (bits & 0x7f800000u) == 0 ? std::bit_cast<float>(bits & 0x80000000u) : x;
}
inline double flush(double x) { return x; }

/// .sat: to [0, 1], NaN to +0. Written so that -0 becomes +0.
template <typename T>
inline T clamp_unit(T x) {
  const T low = x > T{0} ? x : T{0};
  return low < T{1} ? low : T{1};
}

/// One correctly rounded addition of a product. Where the target has no fused instruction this is a
/// library call, slow and just as exact.
inline float fused(float a, float b, float c) { return __builtin_fmaf(a, b, c); }
inline double fused(double a, double b, double c) { return __builtin_fma(a, b, c); }

/// Wraps a functor with the modifiers of a single-precision instruction.
template <typename F, bool kFlush, bool kSaturate>
struct WithModifiers {
  template <typename... T>
  auto operator()(T... x) const {
    auto result = F{}((kFlush ? flush(x) : x)...);
    if constexpr (kFlush) result = flush(result);
    if constexpr (kSaturate) return clamp_unit(result);
    return canonical(result);
  }
};

/// OpPair of a functor that vectorises, for f32 (with modifiers) or f64.
template <typename F, int kInputs, typename T, bool kSerial = false>
OpPair float_pair() {
  if constexpr (kInputs == 1) return kSerial ? unary_serial_pair<F, T>() : unary_pair<F, T>();
  if constexpr (kInputs == 2) return kSerial ? binary_serial_pair<F, T>() : binary_pair<F, T>();
  if constexpr (kInputs == 3) return kSerial ? ternary_serial_pair<F, T>() : ternary_pair<F, T>();
}

template <typename F, int kInputs>
OpPair by_float(const ptx::Modifiers& mods) {
  if (mods.type[0] == ptx::Type::f64) {
    return float_pair<WithModifiers<F, false, false>, kInputs, double>();
  }
  if (mods.type[0] != ptx::Type::f32) return {};
  if (mods.ftz) {
    return mods.sat ? float_pair<WithModifiers<F, true, true>, kInputs, float>()
                    : float_pair<WithModifiers<F, true, false>, kInputs, float>();
  }
  return mods.sat ? float_pair<WithModifiers<F, false, true>, kInputs, float>()
                  : float_pair<WithModifiers<F, false, false>, kInputs, float>();
}

}  // namespace kernwright::sim::KW_SIM_NS
