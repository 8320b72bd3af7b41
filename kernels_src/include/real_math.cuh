// The functions of float and double under one name, so that templates can take either.
#pragma once

#include <kernwright/elements.cuh>

namespace kernwright {

template <typename P>
struct Real;

template <>
struct Real<float> {
  static constexpr float kHuge = 4e37f;              ///< the sum of two larger numbers may overflow
  static constexpr float kTiny = 4e-31f;             ///< below: numbers near the subnormal ones
  static constexpr float kUp = 1.8014398509482e16f;  ///< 2^54, and the square root of it
  static constexpr float kSqrtUp = 134217728.0f;
  static constexpr float kLargeExponent = 80.0f;
  static constexpr float kTanhIsOne = 11.0f;
  static constexpr float kSquareFits = 1e10f;
  __device__ static float infinity() { return __uint_as_float(0x7f800000u); }
  __device__ static float nan() { return __uint_as_float(0x7fc00000u); }
  __device__ static float abs(float x) { return fabsf(x); }
  __device__ static float acos(float x) { return acosf(x); }
  __device__ static float acosh(float x) { return acoshf(x); }
  __device__ static float asin(float x) { return asinf(x); }
  __device__ static float asinh(float x) { return asinhf(x); }
  __device__ static float atan(float x) { return atanf(x); }
  __device__ static float atan2(float y, float x) { return atan2f(y, x); }
  __device__ static float atanh(float x) { return atanhf(x); }
  __device__ static float cbrt(float x) { return cbrtf(x); }
  __device__ static float ceil(float x) { return ceilf(x); }
  __device__ static float copysign(float x, float sign) { return copysignf(x, sign); }
  __device__ static float cos(float x) { return cosf(x); }
  __device__ static float cosh(float x) { return coshf(x); }
  __device__ static float erf(float x) { return erff(x); }
  __device__ static float exp(float x) { return expf(x); }
  __device__ static float exp2(float x) { return exp2f(x); }
  __device__ static float expm1(float x) { return expm1f(x); }
  __device__ static float floor(float x) { return floorf(x); }
  __device__ static float fmod(float x, float y) { return fmodf(x, y); }
  __device__ static float hypot(float x, float y) { return hypotf(x, y); }
  __device__ static float bessel_i0(float x) { return cyl_bessel_i0f(x); }
  __device__ static float ldexp(float x, int exponent) { return ldexpf(x, exponent); }
  __device__ static float log(float x) { return logf(x); }
  __device__ static float log10(float x) { return log10f(x); }
  __device__ static float log1p(float x) { return log1pf(x); }
  __device__ static float log2(float x) { return log2f(x); }
  __device__ static float nextafter(float x, float to) { return nextafterf(x, to); }
  __device__ static float pow(float x, float y) { return powf(x, y); }
  __device__ static float rint(float x) { return rintf(x); }
  __device__ static float rsqrt(float x) { return rsqrtf(x); }
  __device__ static float sin(float x) { return sinf(x); }
  __device__ static float sinpi(float x) { return sinpif(x); }
  __device__ static float sinh(float x) { return sinhf(x); }
  __device__ static float sqrt(float x) { return sqrtf(x); }
  __device__ static float tan(float x) { return tanf(x); }
  __device__ static float tanh(float x) { return tanhf(x); }
  __device__ static float trunc(float x) { return truncf(x); }
  __device__ static bool signbit(float x) { return __float_as_int(x) < 0; }
};

template <>
struct Real<double> {
  static constexpr double kHuge = 4e307;
  static constexpr double kTiny = 4e-290;
  static constexpr double kUp = 1.8014398509481984e16;
  static constexpr double kSqrtUp = 134217728.0;
  static constexpr double kLargeExponent = 700.0;
  static constexpr double kTanhIsOne = 22.0;
  static constexpr double kSquareFits = 1e20;
  __device__ static double infinity() { return __longlong_as_double(0x7ff0000000000000LL); }
  __device__ static double nan() { return __longlong_as_double(0x7ff8000000000000LL); }
  __device__ static double abs(double x) { return ::fabs(x); }
  __device__ static double acos(double x) { return ::acos(x); }
  __device__ static double acosh(double x) { return ::acosh(x); }
  __device__ static double asin(double x) { return ::asin(x); }
  __device__ static double asinh(double x) { return ::asinh(x); }
  __device__ static double atan(double x) { return ::atan(x); }
  __device__ static double atan2(double y, double x) { return ::atan2(y, x); }
  __device__ static double atanh(double x) { return ::atanh(x); }
  __device__ static double cbrt(double x) { return ::cbrt(x); }
  __device__ static double ceil(double x) { return ::ceil(x); }
  __device__ static double copysign(double x, double sign) { return ::copysign(x, sign); }
  __device__ static double cos(double x) { return ::cos(x); }
  __device__ static double cosh(double x) { return ::cosh(x); }
  __device__ static double erf(double x) { return ::erf(x); }
  __device__ static double exp(double x) { return ::exp(x); }
  __device__ static double exp2(double x) { return ::exp2(x); }
  __device__ static double expm1(double x) { return ::expm1(x); }
  __device__ static double floor(double x) { return ::floor(x); }
  __device__ static double fmod(double x, double y) { return ::fmod(x, y); }
  __device__ static double hypot(double x, double y) { return ::hypot(x, y); }
  __device__ static double bessel_i0(double x) { return ::cyl_bessel_i0(x); }
  __device__ static double ldexp(double x, int exponent) { return ::ldexp(x, exponent); }
  __device__ static double log(double x) { return ::log(x); }
  __device__ static double log10(double x) { return ::log10(x); }
  __device__ static double log1p(double x) { return ::log1p(x); }
  __device__ static double log2(double x) { return ::log2(x); }
  __device__ static double nextafter(double x, double to) { return ::nextafter(x, to); }
  __device__ static double pow(double x, double y) { return ::pow(x, y); }
  __device__ static double rint(double x) { return ::rint(x); }
  __device__ static double rsqrt(double x) { return ::rsqrt(x); }
  __device__ static double sin(double x) { return ::sin(x); }
  __device__ static double sinpi(double x) { return ::sinpi(x); }
  __device__ static double sinh(double x) { return ::sinh(x); }
  __device__ static double sqrt(double x) { return ::sqrt(x); }
  __device__ static double tan(double x) { return ::tan(x); }
  __device__ static double tanh(double x) { return ::tanh(x); }
  __device__ static double trunc(double x) { return ::trunc(x); }
  __device__ static bool signbit(double x) { return __double_as_longlong(x) < 0; }
};

template <typename P>
__device__ __forceinline__ bool is_nan(P x) {
  return x != x;
}
template <typename P>
__device__ __forceinline__ bool is_infinite(P x) {
  return Real<P>::abs(x) == Real<P>::infinity();
}
template <typename P>
__device__ __forceinline__ bool is_finite(P x) {
  return Real<P>::abs(x) < Real<P>::infinity();
}

}  // namespace kernwright
