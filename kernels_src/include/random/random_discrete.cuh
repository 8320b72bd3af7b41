// Distributions of whole numbers with a parameter for each element, in double precision.
#pragma once

#include <kernwright/random_continuous.cuh>
#include <kernwright/random_source.cuh>

namespace kernwright {

/// The result for a parameter outside its range.
constexpr long long kNoNumber = -1;

/// log(k!) less Stirling's formula for k (W. Hoermann, "The generation of binomial random
/// variates", 1993).
__device__ __forceinline__ double stirling_tail(double k) {
  constexpr double kTable[] = {0.08106146679532726, 0.04134069595540929, 0.02767792568499834,
                               0.02079067210376509, 0.01664469118982119, 0.01387612882307075,
                               0.01189670994589177, 0.01041126526197209, 0.009255462182712733,
                               0.008330563433362871};
  if (k < 10) return kTable[static_cast<int>(k)];
  const double square = (k + 1) * (k + 1);
  return (1.0 / 12 - (1.0 / 360 - 1.0 / 1260 / square) / square) / (k + 1);
}
/// log(k!).
__device__ __forceinline__ double log_factorial(double k) {
  return (k + 0.5) * log(k + 1) - (k + 1) + 0.9189385332046728 + stirling_tail(k);
}

/// A Poisson number of mean `mean` between 0 and 9.2e18: products of uniform numbers below 10, else
/// transformed rejection (W. Hoermann, "The transformed rejection method for generating Poisson
/// random variables", 1993, PTRS).
__device__ __forceinline__ long long poisson_number(Source& at, double mean) {
  if (mean < 10) {
    const double limit = exp(-mean);
    double product = 1;
    for (long long count = 0;; count += 2) {
      const double2 u = at.units();
      product *= u.x;
      if (product <= limit) return count;
      product *= u.y;
      if (product <= limit) return count + 1;
    }
  }
  const double log_mean = log(mean), b = 0.931 + 2.53 * sqrt(mean), a = -0.059 + 0.02483 * b;
  const double inverse_alpha = 1.1239 + 1.1328 / (b - 3.4), certain = 0.9277 - 3.6224 / (b - 2);
  for (;;) {
    const double2 drawn = at.units();
    const double u = drawn.x - 0.5, v = drawn.y, us = 0.5 - fabs(u);
    const double k = floor((2 * a / us + b) * u + mean + 0.43);
    if (us >= 0.07 && v <= certain) return static_cast<long long>(k);
    if (!(k >= 0) || k > 9.2e18 || (us < 0.013 && v > us)) continue;
    if (log(v * inverse_alpha / (a / (us * us) + b)) <= k * log_mean - mean - log_factorial(k))
      return static_cast<long long>(k);
  }
}

struct Poisson {
  __device__ static long long draw(Source at, const double* p) {
    return p[0] >= 0 && p[0] <= 9.2e18 ? poisson_number(at, p[0]) : kNoNumber;
  }
};

/// How many of n trials succeed, with chances up to 1/2: waiting times where n p is below 10, else
/// transformed rejection (Hoermann 1993, BTRS).
__device__ __forceinline__ double binomial_lower(Source& at, double n, double p) {
  if (n * p < 10) {
    const double scale = 1 / log1p(-p);
    double trials = 0;
    for (double count = 0;; count += 2) {
      const double2 u = at.units();
      trials += ceil(log(u.x) * scale);
      if (!(trials <= n)) return count;
      trials += ceil(log(u.y) * scale);
      if (!(trials <= n)) return count + 1;
    }
  }
  const double q = 1 - p, deviation = sqrt(n * p * q), b = 1.15 + 2.53 * deviation;
  const double a = -0.0873 + 0.0248 * b + 0.01 * p, centre = n * p + 0.5;
  const double certain = 0.92 - 4.2 / b, alpha = (2.83 + 5.1 / b) * deviation;
  const double ratio = p / q, mode = floor((n + 1) * p);
  for (;;) {
    const double2 drawn = at.units();
    const double u = drawn.x - 0.5, us = 0.5 - fabs(u);
    const double k = floor((2 * a / us + b) * u + centre);
    if (us >= 0.07 && drawn.y <= certain) return k;
    if (!(k >= 0 && k <= n)) continue;
    const double v = log(drawn.y * alpha / (a / (us * us) + b));
    const double bound = (mode + 0.5) * log((mode + 1) / (ratio * (n - mode + 1))) +
                         (n + 1) * log((n - mode + 1) / (n - k + 1)) +
                         (k + 0.5) * log(ratio * (n - k + 1) / (k + 1)) + stirling_tail(mode) +
                         stirling_tail(n - mode) - stirling_tail(k) - stirling_tail(n - k);
    if (v <= bound) return k;
  }
}

/// A binomial number of `n` trials (whole, at least 0) with chance `p`.
__device__ __forceinline__ double binomial_number(Source& at, double n, double p) {
  if (n == 0 || p == 0) return 0;
  if (p == 1) return n;
  return p <= 0.5 ? binomial_lower(at, n, p) : n - binomial_lower(at, n, 1 - p);
}
__device__ __forceinline__ bool is_chance(double p) { return p >= 0 && p <= 1; }

struct Binomial {
  __device__ static long long draw(Source at, const double* p) {
    if (!(p[0] >= 0 && p[0] <= 9.2e18 && is_chance(p[1]))) return kNoNumber;
    return static_cast<long long>(binomial_number(at, floor(p[0]), p[1]));
  }
};

/// The number of trials up to the first success; the largest whole number where it is beyond.
struct Geometric {
  __device__ static long long draw(Source at, const double* p) {
    if (!(p[0] > 0 && p[0] <= 1)) return kNoNumber;
    const double trials = ceil(-unit_exponential(unit_pair_at<double>(at)) / log1p(-p[0]));
    return trials < 9.2233720368547748e18 ? static_cast<long long>(fmax(trials, 1.0))
                                          : 0x7fffffffffffffffLL;
  }
};

/// Failures before p[0] successes of chance p[1]: a Poisson number of a gamma number's mean.
struct NegativeBinomial {
  __device__ static long long draw(Source at, const double* p) {
    if (!(is_gamma_shape(p[0]) && p[1] > 0 && p[1] <= 1)) return kNoNumber;
    const double mean = exp(log_gamma_number<double>(at, p[0])) * ((1 - p[1]) / p[1]);
    at.attempt = 0;
    at.lane = 1;
    return poisson_number(at, fmin(mean, 9.2e18));
  }
};

/// Zipf's law with exponent p[0] above 1 (L. Devroye, "Non-uniform random variate generation",
/// 1986, page 551).
struct Zipf {
  __device__ static long long draw(Source at, const double* p) {
    if (!(p[0] > 1)) return kNoNumber;
    if (p[0] >= 1025) return 1;  // all else has no chance in double precision
    const double less = p[0] - 1, b = exp2(less);
    for (;;) {
      const double2 u = at.units();
      const double x = floor(pow(u.x, -1 / less));
      if (!(x >= 1 && x < 9.2233720368547748e18)) continue;
      const double t = pow(1 + 1 / x, less);
      if (u.y * x * (t - 1) / (b - 1) <= t / b) return static_cast<long long>(x);
    }
  }
};

}  // namespace kernwright
