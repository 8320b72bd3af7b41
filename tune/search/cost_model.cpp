// Features of configurations, and the scale on which costs are learnt.
#include "tune/search/cost_model.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>

namespace kernwright {
namespace {

constexpr std::uint64_t kSmallSpace = 20000;  // configurations whose rows are kept: some MB
constexpr std::size_t kMostSamples = 1500;    // that a forest is grown from
constexpr std::size_t kMaxProducts = 10;      // parameters whose products are features

}  // namespace

CostModel::CostModel(const Space& space, std::span<const std::uint32_t> parameters)
    : space_(space),
      set_(space.configurations()),
      parameters_(parameters.begin(), parameters.end()),
      choices_(set_.parameter_count()) {
  for (const std::uint32_t parameter : parameters_) {
    std::vector<float>& own = features_.emplace_back();
    const std::vector<Value>& values = space.parameters()[parameter].values;
    const bool numbers = std::none_of(values.begin(), values.end(), [](const Value& value) {
      return std::holds_alternative<std::string>(value);
    });
    for (std::size_t i = 0; i < values.size(); ++i)
      own.push_back(numbers ? static_cast<float>(Scalar::of(values[i]).as_real())
                            : static_cast<float>(i));
  }
  const std::size_t pairs = P("PROD", 1) && parameters_.size() <= kMaxProducts
                                ? parameters_.size() * (parameters_.size() - 1) / 2
                                : 0;
  width_ = parameters_.size() + (parameters_.empty() ? 0 : pairs);
  one_row_.resize(width_);
  if (set_.size() > kSmallSpace) return;
  all_rows_.resize(set_.size() * width_);
  for (std::uint64_t i = 0; i < set_.size(); ++i)
    write_row(i, std::span(all_rows_).subspan(i * width_, width_));
}

void CostModel::write_row(std::uint64_t index, std::span<float> row) {
  set_.at(index, choices_);
  const std::size_t count = parameters_.size();
  for (std::size_t i = 0; i < count; ++i) row[i] = features_[i][choices_[parameters_[i]]];
  std::size_t next = count;
  for (std::size_t i = 0; i < count && next < width_; ++i)
    for (std::size_t j = i + 1; j < count; ++j) row[next++] = row[i] * row[j];
}

std::span<const float> CostModel::row(std::uint64_t index) {
  if (!all_rows_.empty()) return std::span(all_rows_).subspan(index * width_, width_);
  write_row(index, one_row_);
  return one_row_;
}

void CostModel::fit(std::span<const Sample> samples, Random& random) {
  std::vector<Sample> chosen(samples.begin(), samples.end());
  std::sort(chosen.begin(), chosen.end(), [](const Sample& a, const Sample& b) {
    return std::pair(a.cost, a.index) < std::pair(b.cost, b.index);
  });
  if (chosen.size() > kMostSamples) {
    // The better half matters; of the rest some are enough.
    const std::span<Sample> rest = std::span(chosen).subspan(kMostSamples / 2);
    random.shuffle(rest);
    chosen.resize(kMostSamples);
    std::sort(chosen.begin(), chosen.end(), [](const Sample& a, const Sample& b) {
      return std::pair(a.cost, a.index) < std::pair(b.cost, b.index);
    });
  }
  const auto first_failure = std::find_if(chosen.begin(), chosen.end(), [](const Sample& sample) {
    return !std::isfinite(sample.cost);
  });
  const auto succeeded = static_cast<std::size_t>(first_failure - chosen.begin());
  const bool positive = succeeded > 0 && chosen.front().cost > 0;
  std::vector<double> targets(chosen.size());
  for (std::size_t i = 0; i < chosen.size(); ++i) {
    const std::size_t last = succeeded == 0 ? 0 : std::min(i, succeeded - 1);
    targets[i] = positive ? std::log(chosen[last].cost)
                          : static_cast<double>(last) / static_cast<double>(chosen.size());
  }
  std::vector<float> rows;
  rows.reserve(chosen.size() * width_);
  for (const Sample& sample : chosen) {
    const std::span<const float> own = row(sample.index);
    rows.insert(rows.end(), own.begin(), own.end());
  }
  ForestOptions o;
  o.trees = P("TREES", 40);
  o.feature_share = P("SHARE", 0.6);
  o.thresholds = P("THR", 1);
  o.bootstrap = P("BOOT", 1);
  o.least_leaf = P("LEAF", 1);
  forest_.fit(rows, width_, targets, o, random);
}

Forest::Prediction CostModel::predict(std::uint64_t index) { return forest_.predict(row(index)); }

}  // namespace kernwright
