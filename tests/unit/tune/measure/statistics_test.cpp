// Medians and paired comparisons against exact enumeration, and their promises in simulation.
#include "tune/measure/statistics.h"

#include "base/errors.h"
#include "tune/random.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <vector>

using namespace kernwright;

namespace {

double normal(Random& random) {
  double sum = -6;
  for (int i = 0; i < 12; ++i) sum += random.uniform();
  return sum;
}

std::vector<double> normals(int count, double center, double deviation, Random& random) {
  std::vector<double> values;
  for (int i = 0; i < count; ++i) values.push_back(center + deviation * normal(random));
  return values;
}

/// Of all outcomes of n coins, the part with fewer than k heads: by counting subsets.
double chance_below(int n, int k) {
  std::vector<double> row(1, 1.0);
  for (int i = 0; i < n; ++i) {
    row.push_back(0);
    for (std::size_t j = row.size() - 1; j > 0; --j) row[j] = (row[j] + row[j - 1]) / 2;
    row[0] /= 2;
  }
  double sum = 0;
  for (int j = 0; j < k; ++j) sum += row[static_cast<std::size_t>(j)];
  return sum;
}

/// Two-sided p-value of the signed rank test by all assignments of signs. No ties, no zeros.
double enumerated_p_value(const std::vector<double>& differences) {
  std::vector<double> sorted = differences;
  std::sort(sorted.begin(), sorted.end(),
            [](double a, double b) { return std::fabs(a) < std::fabs(b); });
  const auto n = static_cast<unsigned>(sorted.size());
  const double center = n * (n + 1) / 4.0;
  double seen = 0;
  for (unsigned i = 0; i < n; ++i) seen += sorted[i] > 0 ? i + 1 : 0;
  unsigned extreme = 0;
  for (unsigned signs = 0; signs < 1U << n; ++signs) {
    double sum = 0;
    for (unsigned i = 0; i < n; ++i) sum += (signs >> i & 1U) != 0 ? i + 1 : 0;
    if (std::fabs(sum - center) >= std::fabs(seen - center)) ++extreme;
  }
  return extreme / static_cast<double>(1U << n);
}

}  // namespace

TEST_CASE("median: none, one, odd, even, infinite") {
  CHECK(std::isnan(median({})));
  CHECK(median(std::vector{3.0}) == 3);
  CHECK(median(std::vector{5.0, 1.0, 3.0}) == 3);
  CHECK(median(std::vector{4.0, 1.0, 3.0, 2.0}) == 2.5);
  CHECK(median(std::vector<double>{INFINITY, 1.0, 2.0}) == 2);
}

TEST_CASE("median interval: the narrowest pair of order statistics that covers enough") {
  CHECK(std::isnan(median_interval({}).low));
  CHECK(median_interval(std::vector{7.0}) == Interval{7, 7});
  for (const int n : {2, 5, 6, 7, 8, 9, 15, 16, 40, 101, 1000}) {
    CAPTURE(n);
    std::vector<double> samples;
    for (int i = n; i > 0; --i) samples.push_back(i);  // the k-th smallest is k
    const Interval interval = median_interval(samples);
    const int k = static_cast<int>(interval.low);
    CHECK(interval.high == n + 1 - k);
    // Covered unless fewer than k samples are on one side of the median.
    if (n >= 6) CHECK(1 - 2 * chance_below(n, k) >= 0.95);
    if (n < 6) CHECK(k == 1);
    if (2 * (k + 1) <= n) CHECK(1 - 2 * chance_below(n, k + 1) < 0.95);
  }
  const std::vector<double> eight = {8, 1, 7, 2, 6, 3, 5, 4};
  CHECK(median_interval(eight, 0.5) == Interval{3, 6});  // 1 - 2 * 37 / 256
}

TEST_CASE("relative noise: the coefficient of variation, whatever the outliers") {
  Random random(5);
  std::vector<double> samples = normals(2000, 10, 0.2, random);
  CHECK(relative_noise(samples) == doctest::Approx(0.02).epsilon(0.1));
  for (int i = 0; i < 100; ++i) samples.push_back(1000);
  CHECK(relative_noise(samples) == doctest::Approx(0.02).epsilon(0.2));
  CHECK(relative_noise(std::vector{3.0}) == 0);
  CHECK(relative_noise(std::vector{0.0, 0.0}) == 0);
}

TEST_CASE("paired comparison: the p-value is that of all assignments of signs") {
  Random random(7);
  for (int n = 1; n <= 14; ++n) {
    for (int trial = 0; trial < 5; ++trial) {
      std::vector<double> a, b, logs;
      for (int i = 0; i < n; ++i) {
        a.push_back(std::exp(0.1 * normal(random) + 0.05));
        b.push_back(std::exp(0.1 * normal(random)));
        logs.push_back(std::log(a.back() / b.back()));
      }
      CHECK(compare_pairs(a, b).p_value ==
            doctest::Approx(std::min(1.0, enumerated_p_value(logs))).epsilon(1e-9));
    }
  }
}

TEST_CASE("paired comparison: test and interval agree, and exchanging the two inverts the ratio") {
  Random random(8);
  int excluded = 0;
  for (int trial = 0; trial < 300; ++trial) {
    const int n = 6 + static_cast<int>(random.below(40));
    const std::vector<double> a = normals(n, 10, 0.2, random);
    const std::vector<double> b = normals(n, 10.1, 0.2, random);
    const PairedComparison forth = compare_pairs(a, b), back = compare_pairs(b, a);
    CHECK(forth.ratio * back.ratio == doctest::Approx(1));
    CHECK(forth.interval.low * back.interval.high == doctest::Approx(1));
    CHECK(forth.p_value == doctest::Approx(back.p_value));
    CHECK(forth.interval.low <= forth.ratio);
    CHECK(forth.ratio <= forth.interval.high);
    const bool excludes = forth.interval.low > 1 || forth.interval.high < 1;
    if (n <= 25) CHECK(excludes == (forth.p_value <= 0.05));
    excluded += excludes ? 1 : 0;
  }
  CHECK(excluded > 50);
  CHECK(excluded < 290);
}

TEST_CASE("paired comparison: the interval covers the true ratio, and shared drift cancels") {
  for (const int n : {8, 12, 30}) {
    Random random(static_cast<std::uint64_t>(n));
    int covered = 0;
    for (int trial = 0; trial < 1000; ++trial) {
      std::vector<double> a, b;
      for (int i = 0; i < n; ++i) {
        const double drift = 1 + 0.05 * i;  // far above the noise
        a.push_back(1.02 * drift * std::exp(0.01 * normal(random)));
        b.push_back(drift * std::exp(0.01 * normal(random)));
      }
      const Interval interval = compare_pairs(a, b).interval;
      covered += interval.low <= 1.02 && 1.02 <= interval.high ? 1 : 0;
    }
    CAPTURE(n);
    CHECK(covered >= 930);
    CHECK(covered <= 995);
  }
}

TEST_CASE("paired comparison: equal samples, none, ties, and what is no sample") {
  const std::vector<double> same(10, 2.0);
  CHECK(compare_pairs(same, same).ratio == 1);
  CHECK(compare_pairs(same, same).p_value == 1);
  CHECK(compare_pairs({}, {}).p_value == 1);
  const std::vector<double> slower(10, 2.2);  // all differences tied
  CHECK(compare_pairs(slower, same).ratio == doctest::Approx(1.1));
  CHECK(compare_pairs(slower, same).p_value < 0.01);
  CHECK_THROWS_AS(compare_pairs(std::vector{1.0}, same), InvalidArgument);
  for (const double bad : {0.0, -1.0, double{NAN}, double{INFINITY}}) {
    CHECK_THROWS_AS(compare_pairs(std::vector{bad}, std::vector{1.0}), InvalidArgument);
  }
}
