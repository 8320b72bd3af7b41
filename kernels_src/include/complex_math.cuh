// Complex arithmetic and functions with the special values of C99's annex G, as NumPy has them.
#pragma once

#include <kernwright/real_math.cuh>

namespace kernwright {

template <typename P>
__device__ __forceinline__ Complex<P> operator+(Complex<P> a, Complex<P> b) {
  return {a.real + b.real, a.imag + b.imag};
}
template <typename P>
__device__ __forceinline__ Complex<P> operator-(Complex<P> a, Complex<P> b) {
  return {a.real - b.real, a.imag - b.imag};
}
template <typename P>
__device__ __forceinline__ Complex<P> operator-(Complex<P> a) {
  return {-a.real, -a.imag};
}
template <typename P>
__device__ __forceinline__ Complex<P> operator*(Complex<P> a, Complex<P> b) {
  return {a.real * b.real - a.imag * b.imag, a.real * b.imag + a.imag * b.real};
}
template <typename P>
__device__ __forceinline__ Complex<P> operator*(Complex<P> a, P factor) {
  return {a.real * factor, a.imag * factor};
}
/// Smith's algorithm: no square that could overflow.
template <typename P>
__device__ __forceinline__ Complex<P> operator/(Complex<P> a, Complex<P> b) {
  const P real = Real<P>::abs(b.real), imag = Real<P>::abs(b.imag);
  if (real == 0 && imag == 0) return {a.real / real, a.imag / real};
  if (real >= imag) {
    const P ratio = b.imag / b.real, scale = 1 / (b.real + b.imag * ratio);
    return {(a.real + a.imag * ratio) * scale, (a.imag - a.real * ratio) * scale};
  }
  const P ratio = b.real / b.imag, scale = 1 / (b.imag + b.real * ratio);
  return {(a.real * ratio + a.imag) * scale, (a.imag * ratio - a.real) * scale};
}
template <typename P>
__device__ __forceinline__ bool operator==(Complex<P> a, Complex<P> b) {
  return a.real == b.real && a.imag == b.imag;
}
template <typename P>
__device__ __forceinline__ bool is_nan(Complex<P> z) {
  return is_nan(z.real) || is_nan(z.imag);
}
template <typename P>
__device__ __forceinline__ bool is_infinite(Complex<P> z) {
  return is_infinite(z.real) || is_infinite(z.imag);
}
template <typename P>
__device__ __forceinline__ bool is_finite(Complex<P> z) {
  return is_finite(z.real) && is_finite(z.imag);
}
/// By the real part, then by the imaginary one, as NumPy orders them.
template <typename P>
__device__ __forceinline__ bool operator<(Complex<P> a, Complex<P> b) {
  if (a.real == b.real) return a.imag < b.imag;
  return a.real < b.real && !is_nan(a.imag) && !is_nan(b.imag);
}
template <typename P>
__device__ __forceinline__ bool operator<=(Complex<P> a, Complex<P> b) {
  return a.real == b.real ? a.imag <= b.imag : a < b;
}

/// i z and z / i.
template <typename P>
__device__ __forceinline__ Complex<P> turn_left(Complex<P> z) {
  return {-z.imag, z.real};
}
template <typename P>
__device__ __forceinline__ Complex<P> turn_right(Complex<P> z) {
  return {z.imag, -z.real};
}

template <typename P>
__device__ Complex<P> complex_exp(Complex<P> z) {
  using M = Real<P>;
  if (z.imag == 0) return {M::exp(z.real), z.imag};
  if (is_finite(z.imag)) {
    // Half of the exponent at a time: the product may be finite where exp(x) is not.
    const P half = M::exp(z.real / 2), cosine = M::cos(z.imag), sine = M::sin(z.imag);
    if (z.real > M::kLargeExponent || z.real < -M::kLargeExponent) {
      return {half * cosine * half, half * sine * half};
    }
    const P whole = M::exp(z.real);
    return {whole * cosine, whole * sine};
  }
  if (z.real == -M::infinity()) return {0, 0};
  if (z.real == M::infinity()) return {z.real, M::nan()};
  return {M::nan(), M::nan()};
}

template <typename P>
__device__ Complex<P> complex_log(Complex<P> z) {
  using M = Real<P>;
  const P angle = M::atan2(z.imag, z.real);
  const P x = M::abs(z.real), y = M::abs(z.imag);
  const P large = x < y ? y : x, small = x < y ? x : y;
  // Near the unit circle log(hypot) would lose its digits.
  if (large > P(0.5) && large < 2 && small < 2) {
    return {M::log1p((large - 1) * (large + 1) + small * small) / 2, angle};
  }
  if (large > M::kHuge && is_finite(large)) {
    return {M::log(M::hypot(x / 4, y / 4)) + P(1.38629436111989061883), angle};
  }
  return {M::log(M::hypot(x, y)), angle};
}

template <typename P>
__device__ Complex<P> complex_sqrt(Complex<P> z) {
  using M = Real<P>;
  if (z.real == 0 && z.imag == 0) return {0, z.imag};
  if (is_infinite(z.imag)) return {M::infinity(), z.imag};
  if (is_nan(z.real)) return {z.real, z.real};
  if (is_infinite(z.real)) {
    const P rest = z.imag - z.imag;  // 0, or NaN
    if (z.real > 0) return {z.real, is_nan(z.imag) ? z.imag : M::copysign(0, z.imag)};
    return {M::abs(rest), M::copysign(z.real, z.imag)};
  }
  P scale = 1, x = z.real, y = z.imag;
  if (M::abs(x) > M::kHuge || M::abs(y) > M::kHuge) {
    x /= 4, y /= 4, scale = 2;
  } else if (M::abs(x) < M::kTiny && M::abs(y) < M::kTiny) {
    x *= M::kUp, y *= M::kUp, scale = 1 / M::kSqrtUp;
  }
  const P root = M::sqrt((M::abs(x) + M::hypot(x, y)) / 2);
  const P other = y / (2 * root);
  if (x >= 0) return {root * scale, other * scale};
  return {M::abs(other) * scale, M::copysign(root, y) * scale};
}

template <typename P>
__device__ Complex<P> complex_sinh(Complex<P> z) {
  using M = Real<P>;
  if (z.imag == 0) return {M::sinh(z.real), z.imag};
  if (!is_finite(z.imag)) {
    if (z.real == 0) return {z.real, M::nan()};
    return {is_infinite(z.real) ? z.real : M::nan(), M::nan()};
  }
  const P cosine = M::cos(z.imag), sine = M::sin(z.imag);
  if (M::abs(z.real) > M::kLargeExponent) {
    const P half = M::exp(M::abs(z.real) / 2);
    return {M::copysign(half, z.real) / 2 * cosine * half, half / 2 * sine * half};
  }
  return {M::sinh(z.real) * cosine, M::cosh(z.real) * sine};
}

template <typename P>
__device__ Complex<P> complex_cosh(Complex<P> z) {
  using M = Real<P>;
  if (z.imag == 0) {
    const P sine = M::sinh(z.real);
    return {M::cosh(z.real), (is_finite(sine) ? sine : M::copysign(1, z.real)) * z.imag};
  }
  if (!is_finite(z.imag)) {
    if (z.real == 0) return {M::nan(), 0};
    return {is_infinite(z.real) ? M::infinity() : M::nan(), M::nan()};
  }
  const P cosine = M::cos(z.imag), sine = M::sin(z.imag);
  if (M::abs(z.real) > M::kLargeExponent) {
    const P half = M::exp(M::abs(z.real) / 2);
    return {half / 2 * cosine * half, M::copysign(half, z.real) / 2 * sine * half};
  }
  return {M::cosh(z.real) * cosine, M::sinh(z.real) * sine};
}

/// Kahan's formula.
template <typename P>
__device__ Complex<P> complex_tanh(Complex<P> z) {
  using M = Real<P>;
  if (is_nan(z.real)) return {z.real, z.imag == 0 ? z.imag : M::nan()};
  if (is_infinite(z.real)) {
    return {M::copysign(1, z.real), M::copysign(0, z.imag)};
  }
  if (!is_finite(z.imag)) return {z.real == 0 ? z.real : M::nan(), M::nan()};
  if (M::abs(z.real) >= M::kTanhIsOne) {
    const P decay = M::exp(-M::abs(z.real));
    return {M::copysign(1, z.real), 4 * M::sin(z.imag) * M::cos(z.imag) * decay * decay};
  }
  const P tangent = M::tan(z.imag), beta = 1 + tangent * tangent;
  const P sine = M::sinh(z.real), rho = M::sqrt(1 + sine * sine);
  if (is_infinite(tangent)) return {rho / sine, 1 / tangent};
  const P denominator = 1 + beta * sine * sine;
  return {beta * rho * sine / denominator, tangent / denominator};
}

template <typename P>
__device__ __forceinline__ Complex<P> complex_sin(Complex<P> z) {
  return turn_right(complex_sinh(turn_left(z)));
}
template <typename P>
__device__ __forceinline__ Complex<P> complex_cos(Complex<P> z) {
  return complex_cosh(turn_left(z));
}
template <typename P>
__device__ __forceinline__ Complex<P> complex_tan(Complex<P> z) {
  return turn_right(complex_tanh(turn_left(z)));
}

template <typename P>
inline constexpr P kHalfPi = P(1.57079632679489661923);

// The inverse functions by Kahan's formulas ("Branch cuts for complex elementary functions").

template <typename P>
__device__ Complex<P> complex_asin(Complex<P> z) {
  using M = Real<P>;
  if (is_infinite(z)) return {M::atan2(z.real, M::abs(z.imag)), M::copysign(M::infinity(), z.imag)};
  if (z.real == 0 && is_nan(z.imag)) return z;
  const Complex<P> less = complex_sqrt(Complex<P>{1 - z.real, -z.imag});
  const Complex<P> more = complex_sqrt(Complex<P>{1 + z.real, z.imag});
  const P real = M::atan2(z.real, less.real * more.real - less.imag * more.imag);
  return {real, M::asinh(less.real * more.imag - less.imag * more.real)};
}

template <typename P>
__device__ Complex<P> complex_acos(Complex<P> z) {
  using M = Real<P>;
  if (is_infinite(z)) {
    return {M::atan2(M::abs(z.imag), z.real), -M::copysign(M::infinity(), z.imag)};
  }
  if (z.real == 0 && is_nan(z.imag)) return {kHalfPi<P>, z.imag};
  const Complex<P> less = complex_sqrt(Complex<P>{1 - z.real, -z.imag});
  const Complex<P> more = complex_sqrt(Complex<P>{1 + z.real, z.imag});
  return {2 * M::atan2(less.real, more.real),
          M::asinh(more.real * less.imag - more.imag * less.real)};
}

template <typename P>
__device__ Complex<P> complex_acosh(Complex<P> z) {
  using M = Real<P>;
  if (is_infinite(z)) return {M::infinity(), M::atan2(z.imag, z.real)};
  if (z.real == 0 && is_nan(z.imag)) return {z.imag, kHalfPi<P>};
  const Complex<P> less = complex_sqrt(Complex<P>{z.real - 1, z.imag});
  const Complex<P> more = complex_sqrt(Complex<P>{z.real + 1, z.imag});
  return {M::asinh(less.real * more.real + less.imag * more.imag),
          2 * M::atan2(less.imag, more.real)};
}

template <typename P>
__device__ __forceinline__ Complex<P> complex_asinh(Complex<P> z) {
  return turn_right(complex_asin(turn_left(z)));
}

template <typename P>
__device__ Complex<P> complex_atanh(Complex<P> z) {
  using M = Real<P>;
  const P x = M::abs(z.real), y = M::abs(z.imag);
  if (is_nan(z.imag)) {
    const bool known = z.real == 0 || is_infinite(z.real);
    return {known ? M::copysign(0, z.real) : M::nan(), M::nan()};
  }
  if (is_infinite(z)) return {M::copysign(0, z.real), M::copysign(kHalfPi<P>, z.imag)};
  if (is_nan(z.real)) return {M::nan(), M::nan()};
  if (x > M::kSquareFits || y > M::kSquareFits) {
    const P ratio = x > y ? z.imag / z.real : z.real / z.imag;
    const P real = x > y ? 1 / (z.real + z.imag * ratio) : ratio / (z.imag + z.real * ratio);
    return {real, M::copysign(kHalfPi<P>, z.imag)};
  }
  const P gap = 1 - x;
  const P real = M::log1p(4 * x / (gap * gap + y * y)) / 4;
  return {M::copysign(real, z.real), M::atan2(2 * z.imag, gap * (1 + x) - y * y) / 2};
}

template <typename P>
__device__ __forceinline__ Complex<P> complex_atan(Complex<P> z) {
  return turn_right(complex_atanh(turn_left(z)));
}

template <typename P>
__device__ Complex<P> complex_log1p(Complex<P> z) {
  using M = Real<P>;
  const P square = z.real * (z.real + 2) + z.imag * z.imag;
  if (M::abs(square) < P(0.5)) return {M::log1p(square) / 2, M::atan2(z.imag, 1 + z.real)};
  return complex_log(Complex<P>{1 + z.real, z.imag});
}

template <typename P>
__device__ Complex<P> complex_expm1(Complex<P> z) {
  using M = Real<P>;
  if (!is_finite(z)) return complex_exp(z) - Complex<P>{1, 0};
  if (z.real == 0 && z.imag == 0) return {0, z.imag};  // -0 becomes 0, as the standard has it
  const P sine = M::sin(z.imag / 2);
  return {M::expm1(z.real) * M::cos(z.imag) - 2 * sine * sine, M::exp(z.real) * M::sin(z.imag)};
}

/// Whole exponents by products, as NumPy computes them; further exponents by exp and log.
template <typename P>
__device__ Complex<P> complex_pow(Complex<P> base, Complex<P> exponent) {
  using M = Real<P>;
  if (exponent.real == 0 && exponent.imag == 0) return {1, 0};
  if (base.real == 0 && base.imag == 0) {
    if (exponent.real > 0) return {0, 0};
    return {M::nan(), M::nan()};
  }
  if (exponent.imag == 0 && M::abs(exponent.real) < 100 &&
      exponent.real == M::trunc(exponent.real)) {
    Complex<P> power = base, product = {1, 0};
    for (int n = static_cast<int>(M::abs(exponent.real)); n != 0; n >>= 1) {
      if (n & 1) product = product * power;
      power = power * power;
    }
    return exponent.real < 0 ? Complex<P>{1, 0} / product : product;
  }
  return complex_exp(exponent * complex_log(base));
}

}  // namespace kernwright
