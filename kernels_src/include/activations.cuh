// The activations: the value at x, and the derivative there. F is float or double.
#pragma once

#include <kernwright/elements.cuh>

namespace kernwright {

/// The numbers of some activations (a slope, a bound ...); see each.
template <typename F>
struct Knobs {
  F a, b;
};

__device__ __forceinline__ float math_expm1(float x) { return expm1f(x); }
__device__ __forceinline__ double math_expm1(double x) { return expm1(x); }
__device__ __forceinline__ float math_log1p(float x) { return log1pf(x); }
__device__ __forceinline__ double math_log1p(double x) { return log1p(x); }
__device__ __forceinline__ float math_erfc(float x) { return erfcf(x); }
__device__ __forceinline__ double math_erfc(double x) { return erfc(x); }
__device__ __forceinline__ float math_tanh(float x) { return tanhf(x); }
__device__ __forceinline__ double math_tanh(double x) { return tanh(x); }
__device__ __forceinline__ float math_abs(float x) { return fabsf(x); }
__device__ __forceinline__ double math_abs(double x) { return fabs(x); }
/// Within one unit in the last place.
__device__ __forceinline__ float reciprocal(float x) {
  float result;
  asm("rcp.approx.f32 %0, %1;" : "=f"(result) : "f"(x));
  return result;
}
__device__ __forceinline__ double reciprocal(double x) { return 1.0 / x; }
/// The reciprocal in one instruction; for numbers beyond 2^126 the result is 0.
__device__ __forceinline__ float short_reciprocal(float x) {
  float result;
  asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(result) : "f"(x));
  return result;
}

template <typename F>
__device__ __forceinline__ F sigmoid(F x) {
  return reciprocal(F(1) + math_exp(-x));
}
template <typename F>
__device__ __forceinline__ F softplus(F x) {
  return (x > 0 ? x : F(0)) + math_log1p(math_exp(-math_abs(x)));
}

struct Relu {
  template <typename F>
  __device__ static F value(F x, Knobs<F>) {
    return x < 0 ? F(0) : x;
  }
  template <typename F>
  __device__ static F slope(F x, Knobs<F>) {
    return x <= 0 ? F(0) : F(1);
  }
};

struct Relu2 {
  template <typename F>
  __device__ static F value(F x, Knobs<F>) {
    return x < 0 ? F(0) : x * x;
  }
  template <typename F>
  __device__ static F slope(F x, Knobs<F>) {
    return x < 0 ? F(0) : 2 * x;
  }
};

/// Between a and b.
struct HardTanh {
  template <typename F>
  __device__ static F value(F x, Knobs<F> k) {
    return x < k.a ? k.a : x > k.b ? k.b : x;
  }
  template <typename F>
  __device__ static F slope(F x, Knobs<F> k) {
    return x <= k.a || x >= k.b ? F(0) : F(1);
  }
};

/// a: the slope below 0.
struct LeakyRelu {
  template <typename F>
  __device__ static F value(F x, Knobs<F> k) {
    return x > 0 ? x : k.a * x;
  }
  template <typename F>
  __device__ static F slope(F x, Knobs<F> k) {
    return x > 0 ? F(1) : k.a;
  }
};

/// a (exp(x / b) - 1) below 0: ELU has b = 1, CELU b = a.
struct Elu {
  template <typename F>
  __device__ static F value(F x, Knobs<F> k) {
    return x > 0 ? x : k.a * math_expm1(x / k.b);
  }
  template <typename F>
  __device__ static F slope(F x, Knobs<F> k) {
    return x > 0 ? F(1) : k.a / k.b * math_exp(x / k.b);
  }
};

struct Selu {
  static constexpr double kScale = 1.0507009873554804934193349852946;
  static constexpr double kAlpha = 1.6732632423543772848170429916717;
  template <typename F>
  __device__ static F value(F x, Knobs<F>) {
    return x > 0 ? F(kScale) * x : F(kScale * kAlpha) * math_expm1(x);
  }
  template <typename F>
  __device__ static F slope(F x, Knobs<F>) {
    return x > 0 ? F(kScale) : F(kScale * kAlpha) * math_exp(x);
  }
};

struct Sigmoid {
  template <typename F>
  __device__ static F value(F x, Knobs<F>) {
    return sigmoid(x);
  }
  template <typename F>
  __device__ static F slope(F x, Knobs<F>) {
    return sigmoid(x) * sigmoid(-x);
  }
};

struct LogSigmoid {
  template <typename F>
  __device__ static F value(F x, Knobs<F>) {
    return (x < 0 ? x : F(0)) - math_log1p(math_exp(-math_abs(x)));
  }
  template <typename F>
  __device__ static F slope(F x, Knobs<F>) {
    return sigmoid(-x);
  }
};

struct Tanh {
  template <typename F>
  __device__ static F value(F x, Knobs<F>) {
    return math_tanh(x);
  }
  template <typename F>
  __device__ static F slope(F x, Knobs<F>) {
    return 4 * sigmoid(2 * x) * sigmoid(-2 * x);
  }
};

struct Silu {
  template <typename F>
  __device__ static F value(F x, Knobs<F>) {
    return x * sigmoid(x);
  }
  template <typename F>
  __device__ static F slope(F x, Knobs<F>) {
    const F s = sigmoid(x);
    return s + x * s * sigmoid(-x);
  }
};

/// Silu in few instructions, for results of 16 bits and less: to 1e-5 of itself, -0 below -87.
struct ShortSilu {
  __device__ static float sigmoid(float x) { return short_reciprocal(1 + exp_for<BFloat16>(-x)); }
  __device__ static float value(float x, Knobs<float>) { return x * sigmoid(x); }
  __device__ static float slope(float x, Knobs<float>) {
    const float s = sigmoid(x);
    return s + x * s * sigmoid(-x);
  }
};

/// x times the chance that a standard normal variable is below x.
struct Gelu {
  template <typename F>
  __device__ static F below(F x) {
    return F(0.5) * math_erfc(x * F(-0.70710678118654752440));
  }
  template <typename F>
  __device__ static F value(F x, Knobs<F>) {
    return x * below(x);
  }
  template <typename F>
  __device__ static F slope(F x, Knobs<F>) {
    return below(x) + x * math_exp(x * x * F(-0.5)) * F(0.39894228040143267794);
  }
};

/// Gelu in few instructions, for sums of products: the complementary error function to 1.2e-7 of
/// itself (W. Press et al., "Numerical recipes", erfcc()).
struct ErfcGelu {
  /// The tail probability beyond |x|. The coefficients are those of the source times log2(e).
  __device__ static float tail(float x) {
    const float t = reciprocal(1 + 0.35355339f * fabsf(x));
    constexpr double kTerms[] = {-0.82215223, 1.48851587, -1.13520398, 0.27886807,
                                 -0.18628806, 0.09678418, 0.37409196,  1.00002368};
    constexpr double kLog2 = 1.4426950408889634;
    float sum = static_cast<float>(0.17087277 * kLog2);
#pragma unroll
    for (double term : kTerms) sum = sum * t + static_cast<float>(term * kLog2);
    const float exponent = t * sum + static_cast<float>(-1.26551223 * kLog2 - 1);
    return t * short_exp2(exponent - x * x * static_cast<float>(0.5 * kLog2));
  }
  __device__ static float below(float x) { return x < 0 ? tail(x) : 1 - tail(x); }
  __device__ static float value(float x, Knobs<float>) { return x * below(x); }
  __device__ static float slope(float x, Knobs<float>) {
    return below(x) + x * exp_for<BFloat16>(x * x * -0.5f) * 0.39894228f;
  }
};

/// Gelu in few instructions, for results of 16 bits and less.
struct ShortGelu {
  /// exp(-x^2 / 2).
  __device__ static float bell(float x) { return short_exp2(x * (x * -0.72134752f)); }
  /// The tail probability beyond |x| to a relative error of 1e-5: the bell times a polynomial in t
  /// without a constant term. The coefficients minimise the largest relative error for |x| up to
  /// 13; beyond 13 the bell is 0.
  __device__ static float tail(float x) {
    const float t = short_reciprocal(1 + 0.30759145f * fabsf(x));
    constexpr float kTerms[] = {0.19064854f, 0.0064284975f, 0.13672221f, 0.11866730f, 0.12296276f};
    float sum = -0.07542974f;
#pragma unroll
    for (float term : kTerms) sum = sum * t + term;
    return t * sum * bell(x);
  }
  __device__ static float below(float x) { return x < 0 ? tail(x) : 1 - tail(x); }
  __device__ static float value(float x, Knobs<float>) { return x * below(x); }
  __device__ static float slope(float x, Knobs<float>) {
    return below(x) + x * bell(x) * 0.39894228f;
  }
};

/// 0.5 x (1 + tanh(u)) is x sigmoid(2 u); u = sqrt(2 / pi) (x + 0.044715 x^3).
struct GeluTanh {
  static constexpr double kFirst = 1.5957691216057307117;  // 2 sqrt(2 / pi)
  static constexpr double kThird = 0.044715;
  template <typename F>
  __device__ static F square(F x) {
    return x * x < F(1e6) ? x * x : F(1e6);  // beyond, the sigmoid is 0 or 1 in any case
  }
  template <typename F>
  __device__ static F value(F x, Knobs<F>) {
    return x * sigmoid(F(kFirst) * x * (1 + F(kThird) * square(x)));
  }
  template <typename F>
  __device__ static F slope(F x, Knobs<F>) {
    const F xx = square(x);
    const F u = F(kFirst) * x * (1 + F(kThird) * xx);
    const F s = sigmoid(u);
    return s + x * s * sigmoid(-u) * F(kFirst) * (1 + F(3 * kThird) * xx);
  }
};

/// GeluTanh in few instructions, for results of 16 bits and less: to 1e-5 of itself.
struct ShortGeluTanh {
  static constexpr float kFirst = 1.5957691f;  // 2 sqrt(2 / pi)
  static constexpr float kThird = 0.044715f;
  static constexpr float kLog2 = 1.44269504f;  // log2(e)
  __device__ static float sigmoid(float x, float square) {
    const float factor = -kFirst * kLog2 * kThird * square - kFirst * kLog2;
    return short_reciprocal(1 + short_exp2(x * factor));
  }
  __device__ static float value(float x, Knobs<float>) {
    return x * sigmoid(x, GeluTanh::square(x));
  }
  __device__ static float slope(float x, Knobs<float>) {
    const float square = GeluTanh::square(x), s = sigmoid(x, square);
    return s + x * s * (1 - s) * (kFirst + 3 * kFirst * kThird * square);
  }
};

struct QuickGelu {
  template <typename F>
  __device__ static F value(F x, Knobs<F>) {
    return x * sigmoid(F(1.702) * x);
  }
  template <typename F>
  __device__ static F slope(F x, Knobs<F>) {
    const F s = sigmoid(F(1.702) * x);
    return s + F(1.702) * x * s * sigmoid(F(-1.702) * x);
  }
};

/// log(1 + exp(a x)) / a, and x itself where a x is above b.
struct Softplus {
  template <typename F>
  __device__ static F value(F x, Knobs<F> k) {
    return k.a * x > k.b ? x : softplus(k.a * x) / k.a;
  }
  template <typename F>
  __device__ static F slope(F x, Knobs<F> k) {
    return k.a * x > k.b ? F(1) : sigmoid(k.a * x);
  }
};

struct Softsign {
  template <typename F>
  __device__ static F value(F x, Knobs<F>) {
    return x / (1 + math_abs(x));
  }
  template <typename F>
  __device__ static F slope(F x, Knobs<F>) {
    const F r = F(1) / (1 + math_abs(x));
    return r * r;
  }
};

/// x tanh(softplus(x)), with tanh(log(1 + e)) = w / (w + 2), w = e (e + 2).
struct Mish {
  template <typename F>
  __device__ static F value(F x, Knobs<F>) {
    if (x > 30) return x;
    const F e = math_exp(x), w = e * (e + 2);
    return x * w / (w + 2);
  }
  template <typename F>
  __device__ static F slope(F x, Knobs<F>) {
    if (x > 30) return 1;
    const F e = math_exp(x), w = e * (e + 2), r = F(1) / (w + 2);
    return w * r + x * 4 * (w + 1) * r * r * sigmoid(x);
  }
};

struct HardSwish {
  template <typename F>
  __device__ static F value(F x, Knobs<F>) {
    return x <= -3 ? F(0) : x >= 3 ? x : x * (x + 3) / 6;
  }
  template <typename F>
  __device__ static F slope(F x, Knobs<F>) {
    return x <= -3 ? F(0) : x >= 3 ? F(1) : x / 3 + F(0.5);
  }
};

struct HardSigmoid {
  template <typename F>
  __device__ static F value(F x, Knobs<F>) {
    return x <= -3 ? F(0) : x >= 3 ? F(1) : (x + 3) / 6;
  }
  template <typename F>
  __device__ static F slope(F x, Knobs<F>) {
    return x <= -3 || x >= 3 ? F(0) : F(1) / 6;
  }
};

}  // namespace kernwright
