// Order statistics, and Wilcoxon's signed rank test with its estimate.
#include "tune/measure/statistics.h"

#include "base/errors.h"
#include "base/format.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <numbers>

namespace kernwright {
namespace {

constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();
constexpr std::size_t kMostExactPairs = 25;

std::vector<double> sorted(std::span<const double> samples) {
  std::vector<double> values(samples.begin(), samples.end());
  std::sort(values.begin(), values.end());
  return values;
}

double middle_value(const std::vector<double>& ascending) {
  const std::size_t n = ascending.size();
  if (n == 0) return kNaN;
  return n % 2 == 1 ? ascending[n / 2] : (ascending[n / 2 - 1] + ascending[n / 2]) / 2;
}

/// P(|Z| > z) of a normal variable.
double two_sided(double z) { return std::erfc(std::fabs(z) / std::numbers::sqrt2); }

/// The z with two_sided(z) == `alpha`.
double critical_z(double alpha) {
  double low = 0, high = 40;
  for (int i = 0; i < 100; ++i) {
    const double z = (low + high) / 2;
    (two_sided(z) > alpha ? low : high) = z;
  }
  return low;
}

/// Ranks of the magnitudes of non-zero differences; ties share their mean rank.
struct SignedRanks {
  std::size_t count = 0;
  double positive = 0;  ///< sum of the ranks of positive differences
  double ties = 0;      ///< sum of t^3 - t over groups of t equal magnitudes
};

SignedRanks rank(std::span<const double> differences) {
  std::vector<double> values;
  for (const double d : differences) {
    if (d != 0) values.push_back(d);
  }
  std::sort(values.begin(), values.end(),
            [](double a, double b) { return std::fabs(a) < std::fabs(b); });
  SignedRanks ranks{.count = values.size()};
  for (std::size_t begin = 0; begin < values.size();) {
    std::size_t end = begin;
    while (end < values.size() && std::fabs(values[end]) == std::fabs(values[begin])) ++end;
    const auto tied = static_cast<double>(end - begin);
    const double shared = static_cast<double>(begin + end + 1) / 2;
    for (std::size_t i = begin; i < end; ++i) ranks.positive += values[i] > 0 ? shared : 0;
    ranks.ties += tied * tied * tied - tied;
    begin = end;
  }
  return ranks;
}

/// cumulative[w]: P(W <= w) of the sum of positive ranks among `count` untied differences.
std::vector<double> rank_sum_distribution(std::size_t count) {
  const std::size_t most = count * (count + 1) / 2;
  std::vector<double> ways(most + 1, 0.0);
  ways[0] = 1;
  for (std::size_t r = 1; r <= count; ++r) {
    for (std::size_t w = most; w >= r; --w) ways[w] += ways[w - r];
  }
  const double all = std::ldexp(1.0, static_cast<int>(count));
  double sum = 0;
  for (double& way : ways) way = (sum += way) / all;
  return ways;
}

double rank_sum_variance(double n, double ties) {
  return n * (n + 1) * (2 * n + 1) / 24 - ties / 48;
}

double signed_rank_p_value(const SignedRanks& ranks) {
  if (ranks.count == 0) return 1;
  const auto n = static_cast<double>(ranks.count);
  const double all = n * (n + 1) / 2;
  const double smaller = std::min(ranks.positive, all - ranks.positive);
  if (ranks.ties == 0 && ranks.count <= kMostExactPairs) {
    const std::vector<double> cumulative = rank_sum_distribution(ranks.count);
    return std::min(1.0, 2 * cumulative[static_cast<std::size_t>(smaller)]);
  }
  // Half a rank corrects for the sum being a whole number.
  const double distance = std::max(0.0, all / 2 - smaller - 0.5);
  return two_sided(distance / std::sqrt(rank_sum_variance(n, ranks.ties)));
}

/// How many of the sorted Walsh averages lie outside of the interval on each side.
std::size_t averages_outside(std::size_t count, double alpha) {
  if (count <= kMostExactPairs) {
    const std::vector<double> cumulative = rank_sum_distribution(count);
    std::size_t outside = 0;
    while (outside < cumulative.size() && 2 * cumulative[outside] <= alpha) ++outside;
    return outside;
  }
  const auto n = static_cast<double>(count);
  const double edge = n * (n + 1) / 4 - critical_z(alpha) * std::sqrt(rank_sum_variance(n, 0));
  return static_cast<std::size_t>(std::max(0.0, std::floor(edge)));
}

}  // namespace

double median(std::span<const double> samples) { return middle_value(sorted(samples)); }

Interval median_interval(std::span<const double> samples, double confidence) {
  const std::vector<double> x = sorted(samples);
  const std::size_t n = x.size();
  if (n == 0) return {kNaN, kNaN};
  // The median lies below the k-th and above the (n+1-k)-th sample with a known probability: that
  // of a binomial variable (n, 1/2) below k.
  const auto count = static_cast<double>(n);
  double below = 0;
  std::size_t k = 0;
  while (k < (n - 1) / 2 + 1) {
    const auto i = static_cast<double>(k);
    below += std::exp(std::lgamma(count + 1) - std::lgamma(i + 1) - std::lgamma(count - i + 1) -
                      count * std::numbers::ln2);
    if (2 * below > 1 - confidence) break;
    ++k;
  }
  const std::size_t first = k == 0 ? 0 : k - 1;
  return {x[first], x[n - 1 - first]};
}

double relative_noise(std::span<const double> samples) {
  if (samples.size() < 2) return 0;
  const double center = median(samples);
  if (center == 0) return 0;
  std::vector<double> deviations;
  deviations.reserve(samples.size());
  for (const double sample : samples) deviations.push_back(std::fabs(sample - center));
  return 1.4826 * median(deviations) / std::fabs(center);
}

PairedComparison compare_pairs(std::span<const double> a, std::span<const double> b,
                               double confidence) {
  if (a.size() != b.size()) {
    throw InvalidArgument(format(
        "a paired comparison of {} and {} samples: the counts must be equal", a.size(), b.size()));
  }
  if (a.empty()) return {};
  std::vector<double> logs;
  logs.reserve(a.size());
  for (std::size_t i = 0; i < a.size(); ++i) {
    if (!(a[i] > 0 && b[i] > 0) || !std::isfinite(a[i]) || !std::isfinite(b[i])) {
      throw InvalidArgument(
          format("a paired comparison of {} with {}: samples must be positive", a[i], b[i]));
    }
    logs.push_back(std::log(a[i] / b[i]));
  }
  std::vector<double> averages;
  averages.reserve(logs.size() * (logs.size() + 1) / 2);
  for (std::size_t i = 0; i < logs.size(); ++i) {
    for (std::size_t j = i; j < logs.size(); ++j) averages.push_back((logs[i] + logs[j]) / 2);
  }
  std::sort(averages.begin(), averages.end());
  const std::size_t outside =
      std::min(averages_outside(logs.size(), 1 - confidence), (averages.size() - 1) / 2);
  // NOTE: with `outside` averages beyond each end, the next ones are the ends of the interval; one
  // less is outside where even the extremes do not reach the confidence.
  const std::size_t first = outside == 0 ? 0 : outside - 1;
  return {.ratio = std::exp(middle_value(averages)),
          .interval = {std::exp(averages[first]), std::exp(averages[averages.size() - 1 - first])},
          .p_value = signed_rank_p_value(rank(logs))};
}

}  // namespace kernwright
