// Real distributions with a parameter for each element: draw() makes the number at one place.
#pragma once

#include <kernwright/elements.cuh>
#include <kernwright/random_fills.cuh>
#include <kernwright/random_source.cuh>

namespace kernwright {

template <typename Real>
__device__ __forceinline__ Real quiet_nan() {
  return static_cast<Real>(__uint_as_float(0x7fc00000u));
}

/// A number u in (0, 1) and 1 - u, each exact near 0, so that both tails of a distribution are as
/// fine as its centre.
template <typename Real>
struct UnitPair {
  Real below, above;
};
__device__ __forceinline__ UnitPair<float> unit_pair(float, uint4 bits) {
  return {open_unit(bits.x), open_unit(~bits.x)};
}
__device__ __forceinline__ UnitPair<double> unit_pair(double, uint4 bits) {
  const double middle = 1.1102230246251565e-16 / 2;  // 2 to the -54
  return {to_uniform_double(bits.x, bits.y) + middle, to_uniform_double(~bits.x, ~bits.y) + middle};
}
template <typename Real>
__device__ __forceinline__ UnitPair<Real> unit_pair_at(const Source& at) {
  return unit_pair(Real(0), bits_at(at.seed, at.place));
}
/// -log(1 - u), above 0.
template <typename Real>
__device__ __forceinline__ Real unit_exponential(UnitPair<Real> u) {
  return u.below < Real(0.5) ? -log1p(-u.below) : -log(u.above);
}
template <typename Real>
__device__ __forceinline__ Real unit_normal_at(Source& at);
template <>
__device__ __forceinline__ float unit_normal_at<float>(Source& at) {
  const uint4 bits = at.bits();
  return to_normal(bits.x, bits.y).x;
}
template <>
__device__ __forceinline__ double unit_normal_at<double>(Source& at) {
  return to_normal_double(at.bits()).x;
}

/// Location p[0], scale p[1]: see Laplace, Logistic, Gumbel, Cauchy.
template <typename Unit>
struct LocationScale {
  template <typename Real>
  __device__ static Real draw(Source at, const double* p) {
    if (!(p[1] >= 0)) return quiet_nan<Real>();
    const Real unit = Unit::apply(unit_pair_at<Real>(at));
    return static_cast<Real>(p[1]) * unit + static_cast<Real>(p[0]);
  }
};
struct LaplaceUnit {
  template <typename Real>
  __device__ static Real apply(UnitPair<Real> u) {
    return u.below < u.above ? log(2 * u.below) : -log(2 * u.above);
  }
};
struct LogisticUnit {
  template <typename Real>
  __device__ static Real apply(UnitPair<Real> u) {
    return log(u.below) - log(u.above);
  }
};
struct GumbelUnit {
  template <typename Real>
  __device__ static Real apply(UnitPair<Real> u) {
    return -log(unit_exponential(u));
  }
};
struct CauchyUnit {
  template <typename Real>
  __device__ static Real apply(UnitPair<Real> u) {
    // tan(pi (u - 1/2)) by the tail that is closer.
    const Real near = u.below < u.above ? u.below : u.above;
    const Real value = cospi(near) / sinpi(near);
    return u.below < u.above ? -value : value;
  }
};
using Laplace = LocationScale<LaplaceUnit>;
using Logistic = LocationScale<LogisticUnit>;
using Gumbel = LocationScale<GumbelUnit>;
using Cauchy = LocationScale<CauchyUnit>;

/// The exponential of a normal number of mean p[0] and deviation p[1].
struct Lognormal {
  template <typename Real>
  __device__ static Real draw(Source at, const double* p) {
    if (!(p[1] >= 0)) return quiet_nan<Real>();
    return exp(static_cast<Real>(p[0]) + static_cast<Real>(p[1]) * unit_normal_at<Real>(at));
  }
};

/// Shape p[0], scale p[1].
struct Weibull {
  template <typename Real>
  __device__ static Real draw(Source at, const double* p) {
    if (!(p[0] > 0 && p[1] >= 0)) return quiet_nan<Real>();
    const Real value = unit_exponential(unit_pair_at<Real>(at));
    return static_cast<Real>(p[1]) * pow(value, static_cast<Real>(1 / p[0]));
  }
};

/// Shape p[0]: the distribution of Pareto II (Lomax), from 0 on.
struct Pareto {
  template <typename Real>
  __device__ static Real draw(Source at, const double* p) {
    if (!(p[0] > 0)) return quiet_nan<Real>();
    return expm1(unit_exponential(unit_pair_at<Real>(at)) / static_cast<Real>(p[0]));
  }
};

/// From p[0] to p[2] with the peak at p[1].
struct Triangular {
  template <typename Real>
  __device__ static Real draw(Source at, const double* p) {
    if (!(p[0] <= p[1] && p[1] <= p[2] && p[2] - p[0] < 1e300)) return quiet_nan<Real>();
    const Real left = static_cast<Real>(p[0]), right = static_cast<Real>(p[2]);
    const Real rise = static_cast<Real>(p[1] - p[0]), fall = static_cast<Real>(p[2] - p[1]);
    const Real width = rise + fall;
    const UnitPair<Real> u = unit_pair_at<Real>(at);
    if (u.below * width <= rise) return left + sqrt(u.below * width * rise);
    return right - sqrt(u.above * width * fall);
  }
};

/// A normal number between low and high, both far below 0, where the distribution itself
/// underflows: Newton's steps on the logarithm of Phi(z) / Phi(high), which is concave, from below
/// its root.
__device__ __forceinline__ double normal_tail(double low, double high, UnitPair<double> u) {
  const double root_half = 0.70710678118654752, root_two_over_pi = 0.79788456080286536;
  const double scale = erfcx(-high * root_half);
  const double ratio = erfcx(-low * root_half) / scale * exp((high - low) * (high + low) / 2);
  const double wanted = log(ratio * u.above + u.below);
  double z = high + 2 * wanted / (sqrt(high * high - 2 * wanted) - high);
  for (int step = 0; step < 3; ++step) {
    const double scaled = erfcx(-z * root_half);
    const double error = log(scaled / scale) + (high - z) * (high + z) / 2 - wanted;
    z -= error * scaled / root_two_over_pi;
  }
  return z;
}

/// A normal number of mean p[2] and deviation p[3] between p[0] and p[1], by the inverse of the
/// distribution. Bounds above the mean are mirrored, so that the tail keeps its digits.
struct TruncatedNormal {
  template <typename Real>
  __device__ static Real draw(Source at, const double* p) {
    if (!(p[0] <= p[1] && p[3] > 0)) return quiet_nan<Real>();
    double low = (p[0] - p[2]) / p[3], high = (p[1] - p[2]) / p[3];
    const bool mirrored = low > 0;
    if (mirrored) {
      const double kept = low;
      low = -high;
      high = -kept;
    }
    const UnitPair<double> u = unit_pair_at<double>(at);
    double z = high < -30 ? normal_tail(low, high, u)
                          : normcdfinv(normcdf(low) * u.above + normcdf(high) * u.below);
    z = fmin(fmax(z, low), high);
    const double value = p[2] + p[3] * (mirrored ? -z : z);
    const Real lower = static_cast<Real>(p[0]), upper = static_cast<Real>(p[1]);
    return fmin(fmax(static_cast<Real>(value), lower), upper);
  }
};

/// The logarithm of a gamma number of shape `shape` and scale 1 (Marsaglia and Tsang, see Gamma):
/// it does not underflow for small shapes.
template <typename Real>
__device__ __forceinline__ Real log_gamma_number(Source& at, double shape) {
  const Real d = static_cast<Real>((shape < 1 ? shape + 1 : shape) - 1.0 / 3);
  const Real c = 1 / sqrt(9 * d);
  for (;;) {
    const Real normal = unit_normal_at<Real>(at);
    const double2 units = at.units();
    const Real base = 1 + c * normal;
    if (!(base > 0)) continue;
    const Real log_v = 3 * log(base);
    const Real v = base * base * base;
    const Real accept = log(static_cast<Real>(units.x));
    if (!(accept < normal * normal / 2 + d - d * v + d * log_v)) continue;
    Real result = log(d) + log_v;
    if (shape < 1) result += static_cast<Real>(log(units.y) / shape);
    return result;
  }
}
__device__ __forceinline__ bool is_gamma_shape(double shape) { return shape > 0 && shape < 1e300; }

struct LogGamma {
  template <typename Real>
  __device__ static Real draw(Source at, const double* p) {
    return is_gamma_shape(p[0]) ? log_gamma_number<Real>(at, p[0]) : quiet_nan<Real>();
  }
};

/// Shapes p[0] and p[1]: X / (X + Y) of gamma numbers X and Y.
struct Beta {
  template <typename Real>
  __device__ static Real draw(Source at, const double* p) {
    if (!is_gamma_shape(p[0]) || !is_gamma_shape(p[1])) return quiet_nan<Real>();
    const Real one = log_gamma_number<Real>(at, p[0]);
    at.attempt = 0;
    at.lane = 1;
    return 1 / (1 + exp(log_gamma_number<Real>(at, p[1]) - one));
  }
};

/// Student's t with p[0] degrees of freedom: a normal number over the root of a chi-square's mean.
struct StandardT {
  template <typename Real>
  __device__ static Real draw(Source at, const double* p) {
    if (!(p[0] > 0)) return quiet_nan<Real>();
    const Real normal = unit_normal_at<Real>(at);
    if (!is_gamma_shape(p[0])) return normal;
    at.attempt = 0;
    at.lane = 1;
    const double half = p[0] / 2;
    const Real log_ratio = static_cast<Real>(log(half)) - log_gamma_number<Real>(at, half);
    return normal * exp(log_ratio / 2);
  }
};

}  // namespace kernwright
