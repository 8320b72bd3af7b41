// Functions for generated expressions where C++ has no operator with NumPy's meaning.
#pragma once

#include <kernwright/elements.cuh>
#include <kernwright/reduce.cuh>

namespace kernwright {

// ---- integers: they wrap around, and divide as Python does; by zero gives zero

template <typename T>
__device__ __forceinline__ T wrap_add(T a, T b) {
  return static_cast<T>(static_cast<UInt64>(a) + static_cast<UInt64>(b));
}
template <typename T>
__device__ __forceinline__ T wrap_subtract(T a, T b) {
  return static_cast<T>(static_cast<UInt64>(a) - static_cast<UInt64>(b));
}
template <typename T>
__device__ __forceinline__ T wrap_multiply(T a, T b) {
  return static_cast<T>(static_cast<UInt64>(a) * static_cast<UInt64>(b));
}
template <typename T>
__device__ __forceinline__ T wrap_negative(T a) {
  return static_cast<T>(0 - static_cast<UInt64>(a));
}

template <typename T>
__device__ __forceinline__ T floor_divide_whole(T a, T b) {
  if (b == 0) return 0;
  if (static_cast<T>(-1) < 0 && b == static_cast<T>(-1)) return wrap_negative(a);
  const T quotient = a / b;
  return a % b != 0 && (a < 0) != (b < 0) ? quotient - 1 : quotient;
}
template <typename T>
__device__ __forceinline__ T remainder_whole(T a, T b) {
  if (b == 0 || (static_cast<T>(-1) < 0 && b == static_cast<T>(-1))) return 0;
  const T rest = a % b;
  return rest != 0 && (rest < 0) != (b < 0) ? rest + b : rest;
}
template <typename T>
__device__ __forceinline__ T fmod_whole(T a, T b) {
  if (b == 0 || (static_cast<T>(-1) < 0 && b == static_cast<T>(-1))) return 0;
  return a % b;
}

/// A negative exponent: the truncated reciprocal.
template <typename T>
__device__ __forceinline__ T power_whole(T base, T exponent) {
  if (exponent < 0) {
    if (base == 1) return 1;
    if (base != static_cast<T>(-1)) return 0;
    return exponent % 2 != 0 ? base : 1;
  }
  T result = 1;
  for (UInt64 left = exponent; left != 0; left /= 2) {
    if (left % 2 != 0) result = wrap_multiply(result, base);
    base = wrap_multiply(base, base);
  }
  return result;
}

template <typename T>
__device__ __forceinline__ T shift_left(T a, T bits) {
  constexpr T width = 8 * sizeof(T);
  return bits >= 0 && bits < width ? static_cast<T>(static_cast<UInt64>(a) << bits) : 0;
}
template <typename T>
__device__ __forceinline__ T shift_right(T a, T bits) {
  constexpr T width = 8 * sizeof(T);
  if (bits >= 0 && bits < width) return static_cast<T>(a >> bits);
  return a < 0 ? static_cast<T>(-1) : 0;
}

template <typename T>
__device__ __forceinline__ T absolute_whole(T a) {
  return a < 0 ? wrap_negative(a) : a;
}
template <typename T>
__device__ __forceinline__ T sign_whole(T a) {
  return static_cast<T>((a > 0) - (a < 0));
}

// ---- floats

/// NumPy's floor_divide: near floor(a / b) also where a / b rounds up. The quotient of an infinite
/// a is NaN, and a quotient by an infinite b is 0 or -1.
template <typename T>
__device__ __forceinline__ T floor_divide(T a, T b) {
  if (b == 0) return a / b;
  const T rest = fmod(a, b);
  T quotient = (a - rest) / b;
  if (rest != 0 && (b < 0) != (rest < 0)) quotient -= 1;
  if (quotient == 0) return copysign(static_cast<T>(0), a / b);
  const T whole = floor(quotient);
  return quotient - whole > static_cast<T>(0.5) ? whole + 1 : whole;
}
template <typename T>
__device__ __forceinline__ T remainder_floor(T a, T b) {
  const T rest = fmod(a, b);
  if (b == 0) return rest;
  if (rest == 0) return copysign(static_cast<T>(0), b);
  return (b < 0) != (rest < 0) ? rest + b : rest;
}

template <typename T>
__device__ __forceinline__ T math_sign(T a) {
  return a != a ? a : static_cast<T>((a > 0) - (a < 0));
}

template <typename T>
__device__ __forceinline__ T logaddexp(T a, T b) {
  if (a == b) return a + static_cast<T>(0.693147180559945309417232121458);
  const T difference = a - b;
  if (difference > 0) return a + log1p(exp(-difference));
  return difference <= 0 ? b + log1p(exp(difference)) : difference;
}

/// The value of one element type as one of another, rounded, by the rules of cast().
template <typename To, typename From>
__device__ __forceinline__ Compute<To> convert(From x) {
  return to_compute(Element<To, From>::apply(x));
}
template <typename To>
__device__ __forceinline__ Compute<To> convert(bool x) {
  return to_compute(Element<To, Bool>::apply(Bool{static_cast<unsigned char>(x)}));
}

}  // namespace kernwright
