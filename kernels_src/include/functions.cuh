// Elementwise functions of real and complex numbers.
#pragma once

#include <kernwright/operations.cuh>

namespace kernwright {

// A function of floats, of both kinds and by their own formulas.
#define KERNWRIGHT_REAL_FUNCTION(Name, function) \
  struct Name {                                  \
    template <typename T>                        \
    __device__ static T of(T x) {                \
      return Real<T>::function(x);               \
    }                                            \
  };
#define KERNWRIGHT_FUNCTION(Name, function)         \
  struct Name {                                     \
    template <typename T>                           \
    __device__ static T of(T x) {                   \
      return Real<T>::function(x);                  \
    }                                               \
    template <typename P>                           \
    __device__ static Complex<P> of(Complex<P> z) { \
      return complex_##function(z);                 \
    }                                               \
  };
#define KERNWRIGHT_REAL_FUNCTION_OF_TWO(Name, function) \
  struct Name {                                         \
    template <typename T>                               \
    __device__ static T of(T x, T y) {                  \
      return Real<T>::function(x, y);                   \
    }                                                   \
  };

template <typename P>
__device__ __forceinline__ Complex<P> complex_log2(Complex<P> z) {
  return complex_log(z) * P(1.44269504088896340736);
}
template <typename P>
__device__ __forceinline__ Complex<P> complex_log10(Complex<P> z) {
  return complex_log(z) * P(0.434294481903251827651);
}
template <typename P>
__device__ __forceinline__ Complex<P> complex_exp2(Complex<P> z) {
  return complex_exp(z * P(0.693147180559945309417));
}
template <typename P>
__device__ __forceinline__ Complex<P> complex_rsqrt(Complex<P> z) {
  return Complex<P>{1, 0} / complex_sqrt(z);
}

KERNWRIGHT_FUNCTION(Acos, acos)
KERNWRIGHT_FUNCTION(Acosh, acosh)
KERNWRIGHT_FUNCTION(Asin, asin)
KERNWRIGHT_FUNCTION(Asinh, asinh)
KERNWRIGHT_FUNCTION(Atan, atan)
KERNWRIGHT_FUNCTION(Atanh, atanh)
KERNWRIGHT_FUNCTION(Cos, cos)
KERNWRIGHT_FUNCTION(Cosh, cosh)
KERNWRIGHT_FUNCTION(Exp, exp)
KERNWRIGHT_FUNCTION(Exp2, exp2)
KERNWRIGHT_FUNCTION(Expm1, expm1)
KERNWRIGHT_FUNCTION(Log, log)
KERNWRIGHT_FUNCTION(Log10, log10)
KERNWRIGHT_FUNCTION(Log1p, log1p)
KERNWRIGHT_FUNCTION(Log2, log2)
KERNWRIGHT_FUNCTION(Rsqrt, rsqrt)
KERNWRIGHT_FUNCTION(Sin, sin)
KERNWRIGHT_FUNCTION(Sinh, sinh)
KERNWRIGHT_FUNCTION(Sqrt, sqrt)
KERNWRIGHT_FUNCTION(Tan, tan)
KERNWRIGHT_FUNCTION(Tanh, tanh)
KERNWRIGHT_REAL_FUNCTION(Cbrt, cbrt)
KERNWRIGHT_REAL_FUNCTION(Erf, erf)
KERNWRIGHT_REAL_FUNCTION_OF_TWO(Atan2, atan2)
KERNWRIGHT_REAL_FUNCTION_OF_TWO(CopySign, copysign)
KERNWRIGHT_REAL_FUNCTION_OF_TWO(Hypot, hypot)
KERNWRIGHT_REAL_FUNCTION_OF_TWO(NextAfter, nextafter)

#undef KERNWRIGHT_FUNCTION
#undef KERNWRIGHT_REAL_FUNCTION
#undef KERNWRIGHT_REAL_FUNCTION_OF_TWO

/// log(exp(x) + exp(y)) without overflow.
struct LogAddExp {
  template <typename T>
  __device__ static T of(T x, T y) {
    if (x == y) return x + T(0.693147180559945309417);
    const T gap = x - y;
    if (gap > 0) return x + Real<T>::log1p(Real<T>::exp(-gap));
    if (gap <= 0) return y + Real<T>::log1p(Real<T>::exp(gap));
    return gap;
  }
};

/// The neighbour of `x` towards `to` in a format of less than 32 bits.
template <typename Format>
__device__ __forceinline__ float next_small(float x, float to) {
  if (x != x || to != to) return x + to;
  if (x == to) return to;
  Format code = from_compute<Format>(x);
  if (x == 0) {
    code.bits = static_cast<typename Format::Bits>((to < 0 ? Format::kSign : 0) | 1);
  } else {
    code.bits = static_cast<typename Format::Bits>(code.bits + ((x < to) == (x > 0) ? 1 : -1));
  }
  return to_compute(code);
}

/// `Op` of numbers that stand for elements of type L.
template <typename Op, typename L>
struct Apply {
  template <typename... Numbers>
  __device__ __forceinline__ static auto of(Numbers... numbers) {
    return Op::of(numbers...);
  }
};
template <typename Bits, int E, int M, bool F>
struct Apply<NextAfter, SmallFloat<Bits, E, M, F>> {
  __device__ __forceinline__ static float of(float x, float to) {
    return next_small<SmallFloat<Bits, E, M, F>>(x, to);
  }
};

}  // namespace kernwright
