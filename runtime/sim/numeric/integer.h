// Floating point to integers and back, with every rounding and PTX's clamping.
#pragma once

#include "sim/numeric/rounding.h"

#include <cmath>
#include <limits>
#include <type_traits>

namespace kernwright::sim::KW_SIM_NS::numeric {

/// To an integral value, in the mode of .rni, .rzi, .rmi or .rpi.
template <Rounding kMode, typename T>
[[gnu::always_inline]] inline T round_integral(T x) {
  if constexpr (kMode == Rounding::rzi) return std::trunc(x);
  if constexpr (kMode == Rounding::rmi) return std::floor(x);
  if constexpr (kMode == Rounding::rpi) return std::ceil(x);
  return std::nearbyint(x);
}

/// 2^(bits of I), or 2^(bits - 1) for signed I: the first value above the range.
template <typename I, typename T>
inline constexpr T kAbove = static_cast<T>(std::uint64_t{1} << (sizeof(I) * 8 - 1)) *
                            (std::is_signed_v<I> ? T{1} : T{2});

/// The result for NaN: 0 from float or a half to up to 32 bits, else the top bit alone.
template <typename I, bool kFromDouble>
inline constexpr I kFromNan = kFromDouble || sizeof(I) == 8
                                  ? static_cast<I>(std::uint64_t{1} << (sizeof(I) * 8 - 1))
                                  : I{0};

/// An integral value (round_integral) to I: clamped to I's range. kFromDouble: the PTX source is
/// .f64.
template <typename I, bool kFromDouble, typename T>
[[gnu::always_inline]] inline I to_integer(T x) {
  using Limits = std::numeric_limits<I>;
  constexpr T kLow = static_cast<T>(Limits::min());
  const bool inside = x >= kLow && x < kAbove<I, T>;
  const T safe = inside ? x : T{0};
  // A narrow type goes through int, for vectorised code.
  using Step = std::conditional_t<sizeof(I) < 4, std::int32_t, I>;
  I result = static_cast<I>(static_cast<Step>(safe));
  result = x >= kAbove<I, T> ? Limits::max() : result;
  result = x < kLow ? Limits::min() : result;
  return x != x ? kFromNan<I, kFromDouble> : result;
}

}  // namespace kernwright::sim::KW_SIM_NS::numeric
