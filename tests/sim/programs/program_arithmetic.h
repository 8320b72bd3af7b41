// Arithmetic of PTX in plain C++, for the interpreter of random programs: written without a look at
// the simulated device's handlers.
#pragma once

#include <algorithm>
#include <bit>
#include <cfenv>
#include <cmath>
#include <cstdint>
#include <limits>
#include <type_traits>

namespace kernwright::sim::arithmetic {

using U = std::uint32_t;
using S = std::int32_t;
using W = std::uint64_t;
using L = std::int64_t;

inline S s(U x) { return static_cast<S>(x); }
inline L l(W x) { return static_cast<L>(x); }
inline U u(L x) { return static_cast<U>(x); }
inline W w(L x) { return static_cast<W>(x); }
inline float f(W x) { return std::bit_cast<float>(static_cast<U>(x)); }
inline double g(W x) { return std::bit_cast<double>(x); }
/// All NaN results of 32 bits are one; of 64 bits the programs make them one.
inline U bits(float x) { return std::isnan(x) ? 0x7fffffffu : std::bit_cast<U>(x); }
inline W bits(double x) { return std::isnan(x) ? 0x7fffffffffffffffu : std::bit_cast<W>(x); }

/// The bits of compute() in a rounding mode of the host; its operands must be volatile.
template <int kMode, typename F>
auto rounded(F compute) {
  std::fesetround(kMode);
  volatile auto result = compute();
  std::fesetround(FE_TONEAREST);
  return bits(result);
}

/// a `op` b in a rounding mode.
template <int kMode, typename T, typename F>
auto rounded(T a, T b, F compute) {
  volatile T x = a, y = b;
  return rounded<kMode>([&] { return compute(T{x}, T{y}); });
}

inline U permute(U a, U b, U selector) {
  const W both = W{b} << 32 | a;
  U result = 0;
  for (int i = 0; i < 4; ++i) {
    const U pick = selector >> (4 * i) & 15;
    U byte = static_cast<U>(both >> (8 * (pick & 7))) & 0xff;
    if ((pick & 8) != 0) byte = (byte & 0x80) != 0 ? 0xff : 0;
    result |= byte << (8 * i);
  }
  return result;
}

/// bfe of `width` bits, bit by bit.
inline W field(W a, W at, W length, bool is_signed, unsigned width = 32) {
  at &= 255;
  length &= 255;
  const W top = std::min<W>(at + length - 1, width - 1);
  const W sign = is_signed && length != 0 ? a >> top & 1 : 0;
  W result = 0;
  for (unsigned i = 0; i < width; ++i) {
    const W bit = i < length && at + i < width ? a >> (at + i) & 1 : sign;
    result |= bit << i;
  }
  return result;
}

inline W insert(W a, W b, W at, W length, unsigned width = 32) {
  at &= 255;
  length &= 255;
  for (W i = 0; i < length && at + i < width; ++i) {
    b = (b & ~(W{1} << (at + i))) | (a >> i & 1) << (at + i);
  }
  return b;
}

inline U lop3(U a, U b, U c, U table) {
  U result = 0;
  for (int i = 0; i < 32; ++i) {
    const U index = (a >> i & 1) * 4 + (b >> i & 1) * 2 + (c >> i & 1);
    result |= (table >> index & 1) << i;
  }
  return result;
}

inline U reversed(U a) {
  U result = 0;
  for (int i = 0; i < 32; ++i) result |= (a >> i & 1) << (31 - i);
  return result;
}

/// Towards zero into `Integer`, limited to its range. NaN becomes `nan`.
template <typename Integer>
Integer to_integer(double x, Integer nan) {
  if (std::isnan(x)) return nan;
  x = std::trunc(x);
  const double above =
      std::ldexp(1.0, static_cast<int>(sizeof(Integer) * 8) - (std::is_signed_v<Integer> ? 1 : 0));
  if (x >= above) return std::numeric_limits<Integer>::max();
  if (x < (std::is_signed_v<Integer> ? -above : 0)) return std::numeric_limits<Integer>::min();
  return static_cast<Integer>(x);
}

/// min and max: a number beats NaN, -0 is below +0.
template <typename T>
T extremum(T a, T b, bool low) {
  if (std::isnan(a)) return b;
  if (std::isnan(b)) return a;
  if (a == b) return std::signbit(a) == low ? a : b;
  return (a < b) == low ? a : b;
}

/// f16: its value, and the nearest f16 of a number (which a double holds well enough).
inline double half(W x) {
  const int exponent = static_cast<int>(x >> 10 & 31);
  const auto fraction = static_cast<double>(x & 1023);
  const double sign = (x >> 15 & 1) != 0 ? -1 : 1;
  if (exponent == 31) return fraction != 0 ? NAN : sign * INFINITY;
  return sign *
         (exponent == 0 ? std::ldexp(fraction, -24) : std::ldexp(1024 + fraction, exponent - 25));
}
inline U to_half(double x) {
  if (std::isnan(x)) return 0x7fff;
  const U sign = std::signbit(x) ? 0x8000 : 0;
  const double size = std::fabs(x);
  if (size >= 65520) return sign | 0x7c00;
  if (size == 0) return sign;
  int exponent = 0;
  std::frexp(size, &exponent);
  const int unit = std::max(exponent - 11, -24);
  const double steps = std::nearbyint(std::ldexp(size, -unit));
  if (unit == -24) return sign | static_cast<U>(steps);
  // One step beyond the fraction is the next exponent: the sum carries.
  return sign | ((static_cast<U>(unit + 25) << 10) + (static_cast<U>(steps) - 1024));
}
/// Both halves of a word, one by one.
template <typename F>
U halves(U a, U b, U c, F compute) {
  const U low = to_half(compute(half(a), half(b), half(c)));
  return low | to_half(compute(half(a >> 16), half(b >> 16), half(c >> 16))) << 16;
}

}  // namespace kernwright::sim::arithmetic
