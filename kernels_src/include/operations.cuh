// Elementwise operations: what each computes of numbers of one type, by NumPy's rules.
#pragma once

#include <kernwright/complex_math.cuh>

namespace kernwright {

// ---- kinds of the types that arithmetic runs in

template <typename T>
inline constexpr bool kIsReal = false;
template <>
inline constexpr bool kIsReal<float> = true;
template <>
inline constexpr bool kIsReal<double> = true;

template <typename T>
inline constexpr bool kIsComplex = false;
template <typename P>
inline constexpr bool kIsComplex<Complex<P>> = true;

template <typename T>
inline constexpr bool kIsBool = false;
template <>
inline constexpr bool kIsBool<bool> = true;

template <typename T>
inline constexpr bool kIsWhole = !kIsReal<T> && !kIsComplex<T> && !kIsBool<T>;

template <typename T>
inline constexpr bool kIsSigned = kIsWhole<T>&& static_cast<T>(-1) < static_cast<T>(1);
template <typename P>
inline constexpr bool kIsSigned<Complex<P>> = false;

/// Wraps around instead of being undefined: no overflow of a signed type.
template <typename T>
__device__ __forceinline__ UInt64 wrapped(T x) {
  return static_cast<UInt64>(x);
}

// ---- arithmetic

struct Add {
  template <typename T>
  __device__ static T apply(T a, T b) {
    if constexpr (kIsBool<T>) return a || b;
    if constexpr (kIsWhole<T>) return static_cast<T>(wrapped(a) + wrapped(b));
    if constexpr (!kIsBool<T> && !kIsWhole<T>) return a + b;
  }
};
struct Subtract {
  template <typename T>
  __device__ static T apply(T a, T b) {
    if constexpr (kIsWhole<T>) return static_cast<T>(wrapped(a) - wrapped(b));
    if constexpr (!kIsWhole<T>) return a - b;
  }
};
struct Multiply {
  template <typename T>
  __device__ static T apply(T a, T b) {
    if constexpr (kIsBool<T>) return a && b;
    if constexpr (kIsWhole<T>) return static_cast<T>(wrapped(a) * wrapped(b));
    if constexpr (!kIsBool<T> && !kIsWhole<T>) return a * b;
  }
};
struct Divide {
  template <typename T>
  __device__ static T apply(T a, T b) {
    return a / b;
  }
};

/// a / b and a % b of integers, rounded to 0; division by 0 gives 0, and by -1 wraps around.
template <typename T>
__device__ __forceinline__ T whole_quotient(T a, T b) {
  if (b == 0) return 0;
  if (kIsSigned<T> && b == static_cast<T>(-1)) return static_cast<T>(0 - wrapped(a));
  return static_cast<T>(a / b);
}
template <typename T>
__device__ __forceinline__ T whole_rest(T a, T b) {
  if (b == 0 || (kIsSigned<T> && b == static_cast<T>(-1))) return 0;
  return static_cast<T>(a % b);
}

struct Remainder {
  template <typename T>
  __device__ static T apply(T a, T b) {
    if constexpr (kIsWhole<T>) {
      const T rest = whole_rest(a, b);
      return rest != 0 && (rest < 0) != (b < 0) ? static_cast<T>(rest + b) : rest;
    } else {
      const T rest = Real<T>::fmod(a, b);
      if (b == 0) return rest;
      if (rest == 0) return Real<T>::copysign(0, b);
      return (rest < 0) != (b < 0) ? rest + b : rest;
    }
  }
};
struct FloorDivide {
  template <typename T>
  __device__ static T apply(T a, T b) {
    if constexpr (kIsWhole<T>) {
      const T quotient = whole_quotient(a, b), rest = whole_rest(a, b);
      return rest != 0 && (rest < 0) != (b < 0) ? static_cast<T>(quotient - 1) : quotient;
    } else {
      if (b == 0) return a / b;
      const T rest = Real<T>::fmod(a, b);
      T quotient = (a - rest) / b;
      if (rest != 0 && (rest < 0) != (b < 0)) quotient -= 1;
      if (quotient == 0) return Real<T>::copysign(0, a / b);
      const T whole = Real<T>::floor(quotient);
      return quotient - whole > T(0.5) ? whole + 1 : whole;
    }
  }
};
struct Fmod {
  template <typename T>
  __device__ static T apply(T a, T b) {
    if constexpr (kIsWhole<T>) return whole_rest(a, b);
    if constexpr (!kIsWhole<T>) return Real<T>::fmod(a, b);
  }
};
struct Pow {
  template <typename T>
  __device__ static T apply(T a, T b) {
    if constexpr (kIsWhole<T>) return whole(a, b);
    if constexpr (kIsComplex<T>) return complex_pow(a, b);
    if constexpr (kIsReal<T>) return Real<T>::pow(a, b);
  }
  /// A power that wraps around. A negative exponent gives the fraction without its digits: 0 except
  /// for bases 1 and -1.
  template <typename T>
  __device__ static T whole(T a, T b) {
    if (b < 0) {
      if (a == 1) return 1;
      if (a == static_cast<T>(-1)) return b & 1 ? a : static_cast<T>(1);
      return 0;
    }
    UInt64 power = wrapped(a), product = 1;
    for (UInt64 n = wrapped(b); n != 0; n >>= 1) {
      if (n & 1) product *= power;
      power *= power;
    }
    return static_cast<T>(product);
  }
};
struct Negative {
  template <typename T>
  __device__ static T apply(T x) {
    if constexpr (kIsWhole<T>) return static_cast<T>(0 - wrapped(x));
    if constexpr (!kIsWhole<T>) return -x;
  }
};
struct Positive {
  template <typename T>
  __device__ static T apply(T x) {
    return x;
  }
};
struct Square {
  template <typename T>
  __device__ static T apply(T x) {
    return Multiply::apply(x, x);
  }
};
struct Reciprocal {
  template <typename T>
  __device__ static T apply(T x) {
    if constexpr (kIsWhole<T>) return whole_quotient(static_cast<T>(1), x);
    if constexpr (kIsReal<T>) return 1 / x;
    if constexpr (kIsComplex<T>) return T{1, 0} / x;
  }
};
struct Abs {
  template <typename T>
  __device__ static T apply(T x) {
    if constexpr (kIsReal<T>) return Real<T>::abs(x);
    if constexpr (!kIsReal<T>) return x < 0 ? static_cast<T>(0 - wrapped(x)) : x;
  }
  __device__ static bool apply(bool x) { return x; }
  template <typename P>
  __device__ static P apply(Complex<P> x) {
    return Real<P>::hypot(x.real, x.imag);
  }
};
struct Sign {
  template <typename T>
  __device__ static T apply(T x) {
    if (kIsReal<T> && x != x) return x;
    return static_cast<T>((x > 0) - (x < 0));
  }
  template <typename P>
  __device__ static Complex<P> apply(Complex<P> x) {
    if (x.real == 0 && x.imag == 0) return {0, 0};
    if (is_nan(x)) return {Real<P>::nan(), Real<P>::nan()};
    if (is_infinite(x)) {
      if (!is_infinite(x.imag)) return {Real<P>::copysign(1, x.real), 0};
      if (!is_infinite(x.real)) return {0, Real<P>::copysign(1, x.imag)};
      return {Real<P>::nan(), Real<P>::nan()};
    }
    const P length = Real<P>::hypot(x.real, x.imag);
    return {x.real / length, x.imag / length};
  }
};
struct Maximum {
  template <typename T>
  __device__ static T apply(T a, T b) {
    if constexpr (kIsReal<T> || kIsComplex<T>) return b <= a || is_nan(a) ? a : b;
    return b <= a ? a : b;
  }
};
struct Minimum {
  template <typename T>
  __device__ static T apply(T a, T b) {
    if constexpr (kIsReal<T> || kIsComplex<T>) return a <= b || is_nan(a) ? a : b;
    return a <= b ? a : b;
  }
};
/// The larger one; of a NaN and a number the number.
struct NumberMaximum {
  template <typename T>
  __device__ static T apply(T a, T b) {
    if constexpr (kIsReal<T> || kIsComplex<T>) return b <= a || is_nan(b) ? a : b;
    return b <= a ? a : b;
  }
};
struct NumberMinimum {
  template <typename T>
  __device__ static T apply(T a, T b) {
    if constexpr (kIsReal<T> || kIsComplex<T>) return a <= b || is_nan(b) ? a : b;
    return a <= b ? a : b;
  }
};
struct Clip {
  template <typename T>
  __device__ static T apply(T x, T low, T high) {
    return Minimum::apply(Maximum::apply(x, low), high);
  }
};
struct Where {
  template <typename T>
  __device__ static T apply(bool condition, T a, T b) {
    return condition ? a : b;
  }
};

// ---- rounding and parts

struct Ceil {
  template <typename T>
  __device__ static T apply(T x) {
    if constexpr (kIsReal<T>) return Real<T>::ceil(x);
    return x;
  }
};
struct Floor {
  template <typename T>
  __device__ static T apply(T x) {
    if constexpr (kIsReal<T>) return Real<T>::floor(x);
    return x;
  }
};
struct Trunc {
  template <typename T>
  __device__ static T apply(T x) {
    if constexpr (kIsReal<T>) return Real<T>::trunc(x);
    return x;
  }
};
struct Round {
  template <typename T>
  __device__ static T apply(T x) {
    if constexpr (kIsReal<T>) return Real<T>::rint(x);
    if constexpr (kIsComplex<T>) return {apply(x.real), apply(x.imag)};
    return x;
  }
};
struct Conj {
  template <typename T>
  __device__ static T apply(T x) {
    return x;
  }
  template <typename P>
  __device__ static Complex<P> apply(Complex<P> x) {
    return {x.real, -x.imag};
  }
};
struct RealPart {
  template <typename T>
  __device__ static T apply(T x) {
    return x;
  }
  template <typename P>
  __device__ static P apply(Complex<P> x) {
    return x.real;
  }
};
struct ImaginaryPart {
  template <typename T>
  __device__ static T apply(T) {
    return 0;
  }
  template <typename P>
  __device__ static P apply(Complex<P> x) {
    return x.imag;
  }
};

// ---- comparisons and logic

struct Equal {
  template <typename T>
  __device__ static bool apply(T a, T b) {
    return a == b;
  }
  __device__ static bool apply(Int64 a, UInt64 b) { return a >= 0 && static_cast<UInt64>(a) == b; }
  __device__ static bool apply(UInt64 a, Int64 b) { return apply(b, a); }
};
struct NotEqual {
  template <typename A, typename B>
  __device__ static bool apply(A a, B b) {
    return !Equal::apply(a, b);
  }
};
struct Less {
  template <typename T>
  __device__ static bool apply(T a, T b) {
    return a < b;
  }
  __device__ static bool apply(Int64 a, UInt64 b) { return a < 0 || static_cast<UInt64>(a) < b; }
  __device__ static bool apply(UInt64 a, Int64 b) { return b >= 0 && a < static_cast<UInt64>(b); }
};
struct LessEqual {
  template <typename T>
  __device__ static bool apply(T a, T b) {
    return a <= b;
  }
  __device__ static bool apply(Int64 a, UInt64 b) { return !Less::apply(b, a); }
  __device__ static bool apply(UInt64 a, Int64 b) { return !Less::apply(b, a); }
};
struct Greater {
  template <typename A, typename B>
  __device__ static bool apply(A a, B b) {
    return Less::apply(b, a);
  }
};
struct GreaterEqual {
  template <typename A, typename B>
  __device__ static bool apply(A a, B b) {
    return LessEqual::apply(b, a);
  }
};
struct LogicalAnd {
  __device__ static bool apply(bool a, bool b) { return a && b; }
};
struct LogicalOr {
  __device__ static bool apply(bool a, bool b) { return a || b; }
};
struct LogicalXor {
  __device__ static bool apply(bool a, bool b) { return a != b; }
};
struct LogicalNot {
  __device__ static bool apply(bool a) { return !a; }
};
struct IsFinite {
  template <typename T>
  __device__ static bool apply(T x) {
    if constexpr (kIsReal<T> || kIsComplex<T>) return is_finite(x);
    return true;
  }
};
struct IsInf {
  template <typename T>
  __device__ static bool apply(T x) {
    if constexpr (kIsReal<T> || kIsComplex<T>) return is_infinite(x);
    return false;
  }
};
struct IsNan {
  template <typename T>
  __device__ static bool apply(T x) {
    if constexpr (kIsReal<T> || kIsComplex<T>) return is_nan(x);
    return false;
  }
};
struct SignBit {
  template <typename T>
  __device__ static bool apply(T x) {
    if constexpr (kIsReal<T>) return Real<T>::signbit(x);
    if constexpr (!kIsReal<T>) return x < 0;
  }
};

// ---- bits

struct BitwiseAnd {
  template <typename T>
  __device__ static T apply(T a, T b) {
    return static_cast<T>(a & b);
  }
};
struct BitwiseOr {
  template <typename T>
  __device__ static T apply(T a, T b) {
    return static_cast<T>(a | b);
  }
};
struct BitwiseXor {
  template <typename T>
  __device__ static T apply(T a, T b) {
    return static_cast<T>(a ^ b);
  }
};
struct BitwiseInvert {
  template <typename T>
  __device__ static T apply(T x) {
    if constexpr (kIsBool<T>) return !x;
    if constexpr (!kIsBool<T>) return static_cast<T>(~x);
  }
};
/// Shifts by the width or more, or by less than 0, leave nothing (or the sign), as NumPy has it.
struct LeftShift {
  template <typename T>
  __device__ static T apply(T x, T by) {
    return wrapped(by) < 8 * sizeof(T) ? static_cast<T>(wrapped(x) << wrapped(by)) : T(0);
  }
};
struct RightShift {
  template <typename T>
  __device__ static T apply(T x, T by) {
    if (wrapped(by) < 8 * sizeof(T)) return static_cast<T>(x >> by);
    return x < 0 ? static_cast<T>(-1) : static_cast<T>(0);
  }
};

}  // namespace kernwright
