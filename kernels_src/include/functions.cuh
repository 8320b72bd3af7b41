// Elementwise functions of real and complex numbers, and of integers.
#pragma once

#include <kernwright/operations.cuh>

namespace kernwright {

// A function of floats, of both kinds and by their own formulas.
#define KERNWRIGHT_REAL_FUNCTION(Name, function) \
  struct Name {                                  \
    template <typename T>                        \
    __device__ static T apply(T x) {             \
      return Real<T>::function(x);               \
    }                                            \
  };
#define KERNWRIGHT_FUNCTION(Name, function)            \
  struct Name {                                        \
    template <typename T>                              \
    __device__ static T apply(T x) {                   \
      return Real<T>::function(x);                     \
    }                                                  \
    template <typename P>                              \
    __device__ static Complex<P> apply(Complex<P> z) { \
      return complex_##function(z);                    \
    }                                                  \
  };
#define KERNWRIGHT_REAL_BINARY_FUNCTION(Name, function) \
  struct Name {                                         \
    template <typename T>                               \
    __device__ static T apply(T x, T y) {               \
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
KERNWRIGHT_REAL_FUNCTION(BesselI0, bessel_i0)
KERNWRIGHT_REAL_FUNCTION(Cbrt, cbrt)
KERNWRIGHT_REAL_FUNCTION(Erf, erf)
KERNWRIGHT_REAL_BINARY_FUNCTION(Atan2, atan2)
KERNWRIGHT_REAL_BINARY_FUNCTION(CopySign, copysign)
KERNWRIGHT_REAL_BINARY_FUNCTION(Hypot, hypot)
KERNWRIGHT_REAL_BINARY_FUNCTION(NextAfter, nextafter)

#undef KERNWRIGHT_FUNCTION
#undef KERNWRIGHT_REAL_FUNCTION
#undef KERNWRIGHT_REAL_BINARY_FUNCTION

/// log(exp(x) + exp(y)) without overflow.
struct LogAddExp {
  template <typename T>
  __device__ static T apply(T x, T y) {
    if (x == y) return x + T(0.693147180559945309417);
    const T gap = x - y;
    if (gap > 0) return x + Real<T>::log1p(Real<T>::exp(-gap));
    if (gap <= 0) return y + Real<T>::log1p(Real<T>::exp(gap));
    return gap;
  }
};

/// log2(2^x + 2^y) without overflow.
struct LogAddExp2 {
  template <typename T>
  __device__ static T apply(T x, T y) {
    if (x == y) return x + 1;
    constexpr T kLog2Euler = T(1.44269504088896340736);
    const T gap = x - y;
    if (gap > 0) return x + kLog2Euler * Real<T>::log1p(Real<T>::exp2(-gap));
    if (gap <= 0) return y + kLog2Euler * Real<T>::log1p(Real<T>::exp2(gap));
    return gap;
  }
};

struct DegreesToRadians {
  template <typename T>
  __device__ static T apply(T x) {
    return x * T(0.0174532925199432957692);
  }
};
struct RadiansToDegrees {
  template <typename T>
  __device__ static T apply(T x) {
    return x * T(57.2957795130823208768);
  }
};
/// The angle of a number in the complex plane.
struct Angle {
  template <typename T>
  __device__ static T apply(T x) {
    return Real<T>::atan2(0, x);
  }
  template <typename P>
  __device__ static P apply(Complex<P> z) {
    return Real<P>::atan2(z.imag, z.real);
  }
};
/// sin(pi x) / (pi x), and 1 for 0.
struct Sinc {
  template <typename T>
  __device__ static T apply(T x) {
    return x == 0 ? T(1) : Real<T>::sinpi(x) / (T(3.14159265358979323846) * x);
  }
  template <typename P>
  __device__ static Complex<P> apply(Complex<P> z) {
    if (z.real == 0 && z.imag == 0) return {1, 0};
    const Complex<P> scaled = z * P(3.14159265358979323846);
    return complex_sin(scaled) / scaled;
  }
};
/// 0 below 0, `at_zero` for 0, 1 above.
struct Heaviside {
  template <typename T>
  __device__ static T apply(T x, T at_zero) {
    if (x == 0) return at_zero;
    return x < 0 ? T(0) : x > 0 ? T(1) : x;
  }
};
/// x times 2 to the power of an integer; beyond 5000 every number is 0 or infinite.
struct ScaleByPower {
  template <typename T>
  __device__ static T apply(T x, Int64 exponent) {
    const Int64 limited = exponent > 5000 ? 5000 : exponent < -5000 ? -5000 : exponent;
    return Real<T>::ldexp(x, static_cast<int>(limited));
  }
};
struct IsNegativeInfinity {
  template <typename T>
  __device__ static bool apply(T x) {
    if constexpr (kIsReal<T>) return x == -Real<T>::infinity();
    return false;
  }
};
struct IsPositiveInfinity {
  template <typename T>
  __device__ static bool apply(T x) {
    if constexpr (kIsReal<T>) return x == Real<T>::infinity();
    return false;
  }
};
struct HasImaginaryPart {
  template <typename T>
  __device__ static bool apply(T) {
    return false;
  }
  template <typename P>
  __device__ static bool apply(Complex<P> z) {
    return z.imag != 0;
  }
};
struct HasNoImaginaryPart {
  template <typename T>
  __device__ static bool apply(T x) {
    return !HasImaginaryPart::apply(x);
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

// ---- integers

/// An unsigned type that holds the absolute values of a type of `Size` bytes.
template <int Size>
struct MagnitudeType {
  using Type = UInt32;
};
template <>
struct MagnitudeType<8> {
  using Type = UInt64;
};
template <typename T>
using Magnitude = typename MagnitudeType<sizeof(T)>::Type;

/// |x|, that of the lowest number too.
template <typename T>
__device__ __forceinline__ Magnitude<T> magnitude(T x) {
  return static_cast<Magnitude<T>>(x < 0 ? 0 - wrapped(x) : wrapped(x));
}

/// Euclid's algorithm.
template <typename U>
__device__ __forceinline__ U greatest_divisor(U a, U b) {
  while (b != 0) {
    const U rest = a % b;
    a = b;
    b = rest;
  }
  return a;
}

struct GreatestDivisor {
  template <typename T>
  __device__ static T apply(T a, T b) {
    return static_cast<T>(greatest_divisor(magnitude(a), magnitude(b)));
  }
};
/// 0 where either is 0; wraps around.
struct LeastMultiple {
  template <typename T>
  __device__ static T apply(T a, T b) {
    const Magnitude<T> x = magnitude(a), y = magnitude(b), divisor = greatest_divisor(x, y);
    return divisor == 0 ? T(0) : static_cast<T>(x / divisor * y);
  }
};
/// How many bits of |x| are set.
struct BitwiseCount {
  template <typename T>
  __device__ static UInt8 apply(T x) {
    if constexpr (kIsBool<T>) {
      return x ? 1 : 0;
    } else if constexpr (sizeof(T) == 8) {
      return static_cast<UInt8>(__popcll(magnitude(x)));
    } else {
      return static_cast<UInt8>(__popc(magnitude(x)));
    }
  }
};

/// `Op` of numbers that stand for elements of type L.
template <typename Op, typename L>
struct Apply {
  template <typename... Numbers>
  __device__ __forceinline__ static auto apply(Numbers... numbers) {
    return Op::apply(numbers...);
  }
};
template <typename Bits, int E, int M, bool F>
struct Apply<NextAfter, SmallFloat<Bits, E, M, F>> {
  __device__ __forceinline__ static float apply(float x, float to) {
    return next_small<SmallFloat<Bits, E, M, F>>(x, to);
  }
};

}  // namespace kernwright
