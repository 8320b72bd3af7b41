// Robust statistics of few samples: median with its interval, noise, paired comparison.
#pragma once

#include <span>
#include <vector>

namespace kernwright {

struct Interval {
  double low = 0, high = 0;
  bool operator==(const Interval&) const = default;
};

/// NaN for no samples.
double median(std::span<const double> samples);

/// The confidence interval of the median by order statistics: distribution-free (David and
/// Nagaraja, Order Statistics, 3rd ed., section 7.1). The narrowest symmetric pair of order
/// statistics to cover the median with at least `confidence`; the whole range for too few samples
/// (below 6 for 95 %). NaN for no samples.
Interval median_interval(std::span<const double> samples, double confidence = 0.95);

/// Relative spread, robust to outliers: 1.4826 times the median absolute deviation, over the
/// median. It equals the coefficient of variation for normal samples. 0 below 2 samples.
double relative_noise(std::span<const double> samples);

/// How much slower `a` is than `b`, sample by sample.
struct PairedComparison {
  double ratio = 1;         ///< a / b
  Interval interval{1, 1};  ///< of the ratio
  double p_value = 1;       ///< of equal speed
};

/// Compares samples taken side by side: common drift cancels. Wilcoxon's signed rank test on the
/// logarithms of the ratios (exact up to 25 pairs without ties, else the normal approximation), the
/// Hodges-Lehmann estimate, and its interval from the Walsh averages (Hollander, Wolfe, Chicken,
/// Nonparametric Statistical Methods, 3rd ed., sections 3.1 to 3.3). Throws InvalidArgument for
/// different counts and for samples not above 0.
PairedComparison compare_pairs(std::span<const double> a, std::span<const double> b,
                               double confidence = 0.95);

}  // namespace kernwright
