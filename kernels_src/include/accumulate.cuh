// Accumulator types of sums, products and comparisons, and their arithmetic, complex included.
#pragma once

#include <kernwright/elements.cuh>

namespace kernwright {

/// The type of sums and products of T: 64 bits for integers, Compute<T> for all further types.
template <typename T>
struct AccumulatorTraits {
  using Type = Compute<T>;
};
template <>
struct AccumulatorTraits<Int8> {
  using Type = Int64;
};
template <>
struct AccumulatorTraits<Int16> {
  using Type = Int64;
};
template <>
struct AccumulatorTraits<Int32> {
  using Type = Int64;
};
template <>
struct AccumulatorTraits<UInt8> {
  using Type = UInt64;
};
template <>
struct AccumulatorTraits<UInt16> {
  using Type = UInt64;
};
template <>
struct AccumulatorTraits<UInt32> {
  using Type = UInt64;
};
template <typename T>
using Accumulator = typename AccumulatorTraits<T>::Type;

/// Values of T are compared in it: whole words.
template <typename T>
struct WordTraits {
  using Type = Compute<T>;
};
template <>
struct WordTraits<Bool> {
  using Type = Int32;
};
template <>
struct WordTraits<Int8> {
  using Type = Int32;
};
template <>
struct WordTraits<Int16> {
  using Type = Int32;
};
template <>
struct WordTraits<UInt8> {
  using Type = UInt32;
};
template <>
struct WordTraits<UInt16> {
  using Type = UInt32;
};
template <typename T>
using Word = typename WordTraits<T>::Type;

/// The real type of a number that is computed with.
template <typename T>
struct RealTraits {
  using Type = T;
};
template <typename Part>
struct RealTraits<Complex<Part>> {
  using Type = Part;
};
template <typename T>
using Real = typename RealTraits<T>::Type;

/// The next wider type where that costs little: sums of many sums are kept in it.
template <typename T>
struct WideTraits {
  using Type = T;
};
template <>
struct WideTraits<float> {
  using Type = double;
};
template <>
struct WideTraits<Complex64> {
  using Type = Complex128;
};
template <typename T>
using Wide = typename WideTraits<T>::Type;

/// An element as a value of `As`, to be computed with as `Value`.
template <typename As, typename In, typename Value>
struct Taken {
  __device__ static Value apply(In x) {
    return static_cast<Value>(to_compute(Element<As, In>::apply(x)));
  }
};
template <typename As, typename Value>
struct Taken<As, As, Value> {
  __device__ static Value apply(As x) { return static_cast<Value>(to_compute(x)); }
};

/// The result as a value of `As`: integers wrap around.
template <typename As, typename Value>
__device__ __forceinline__ As narrow(Value x) {
  return from_compute<As>(static_cast<Compute<As>>(x));
}

/// Conversions between a type and its wide type.
template <typename To, typename From>
struct Between {
  __device__ static To apply(From x) { return static_cast<To>(x); }
};
template <typename To, typename From>
struct Between<Complex<To>, Complex<From>> {
  __device__ static Complex<To> apply(Complex<From> x) {
    return {static_cast<To>(x.real), static_cast<To>(x.imag)};
  }
};

template <typename T>
__device__ __forceinline__ T plus(T a, T b) {
  return a + b;
}
__device__ __forceinline__ Int64 plus(Int64 a, Int64 b) {
  return static_cast<Int64>(static_cast<UInt64>(a) + static_cast<UInt64>(b));
}
template <typename Part>
__device__ __forceinline__ Complex<Part> plus(Complex<Part> a, Complex<Part> b) {
  return {a.real + b.real, a.imag + b.imag};
}

template <typename T>
__device__ __forceinline__ T minus(T a, T b) {
  return a - b;
}
template <typename Part>
__device__ __forceinline__ Complex<Part> minus(Complex<Part> a, Complex<Part> b) {
  return {a.real - b.real, a.imag - b.imag};
}

template <typename T>
__device__ __forceinline__ T times(T a, T b) {
  return a * b;
}
__device__ __forceinline__ Int64 times(Int64 a, Int64 b) {
  return static_cast<Int64>(static_cast<UInt64>(a) * static_cast<UInt64>(b));
}
template <typename Part>
__device__ __forceinline__ Complex<Part> times(Complex<Part> a, Complex<Part> b) {
  return {a.real * b.real - a.imag * b.imag, a.real * b.imag + a.imag * b.real};
}

template <typename T>
__device__ __forceinline__ T scaled(T a, T by) {
  return a * by;
}
template <typename Part>
__device__ __forceinline__ Complex<Part> scaled(Complex<Part> a, Part by) {
  return {a.real * by, a.imag * by};
}

template <typename T>
__device__ __forceinline__ T divided(T a, T by) {
  return a / by;
}
template <typename Part>
__device__ __forceinline__ Complex<Part> divided(Complex<Part> a, Part by) {
  return {a.real / by, a.imag / by};
}

/// The square of the absolute value.
template <typename T>
__device__ __forceinline__ T squared(T a) {
  return a * a;
}
template <typename Part>
__device__ __forceinline__ Part squared(Complex<Part> a) {
  return a.real * a.real + a.imag * a.imag;
}

/// 0 for a finite number, else NaN.
template <typename T>
__device__ __forceinline__ T zero_if_finite(T a) {
  return a * T(0);
}
template <typename Part>
__device__ __forceinline__ Part zero_if_finite(Complex<Part> a) {
  return a.real * Part(0) + a.imag * Part(0);
}

__device__ __forceinline__ float magnitude(float a) { return fabsf(a); }
__device__ __forceinline__ double magnitude(double a) { return fabs(a); }
__device__ __forceinline__ float magnitude(Complex64 a) { return hypotf(a.real, a.imag); }
__device__ __forceinline__ double magnitude(Complex128 a) { return hypot(a.real, a.imag); }

template <typename T>
struct OneValue {
  __device__ static T value() { return T(1); }
};
template <typename Part>
struct OneValue<Complex<Part>> {
  __device__ static Complex<Part> value() { return {Part(1), Part(0)}; }
};

/// The ends of a type: infinities of floating types.
template <typename T>
struct Ends {
  static constexpr bool kSigned = T(-1) < T(0);
  static constexpr T kTop = static_cast<T>(T(1) << (8 * sizeof(T) - 2));
  __device__ static T lowest() { return kSigned ? static_cast<T>(-kTop - kTop) : T(0); }
  __device__ static T highest() {
    return kSigned ? static_cast<T>(kTop - 1 + kTop) : static_cast<T>(~T(0));
  }
};
template <>
struct Ends<bool> {
  __device__ static bool lowest() { return false; }
  __device__ static bool highest() { return true; }
};
template <>
struct Ends<float> {
  __device__ static float lowest() { return __uint_as_float(0xff800000u); }
  __device__ static float highest() { return __uint_as_float(0x7f800000u); }
};
template <>
struct Ends<double> {
  __device__ static double lowest() { return __longlong_as_double(0xfff0000000000000ULL); }
  __device__ static double highest() { return __longlong_as_double(0x7ff0000000000000ULL); }
};

}  // namespace kernwright
