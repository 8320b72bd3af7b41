// Features of configurations, and the scale for learning costs.
#include "tune/search/cost_model.h"

#include <algorithm>
#include <cmath>
#include <tuple>

namespace kernwright {
namespace {

constexpr std::uint64_t kSmallSpace = 20000;  // configurations of a space with stored rows: some MB
constexpr std::size_t kMostSamples = 1500;    // most samples for a forest

void sort_by_cost(std::vector<CostModel::Sample>& samples) {
  std::sort(samples.begin(), samples.end(),
            [](const CostModel::Sample& a, const CostModel::Sample& b) {
              return std::tie(a.cost, a.index) < std::tie(b.cost, b.index);
            });
}

/// Costs by their logarithm if all are positive, else by their rank; a failure counts as the worst
/// success. `samples` are sorted.
std::vector<double> targets_for(std::span<const CostModel::Sample> samples) {
  const auto failed = [](const CostModel::Sample& sample) { return !std::isfinite(sample.cost); };
  const auto succeeded = static_cast<std::size_t>(
      std::find_if(samples.begin(), samples.end(), failed) - samples.begin());
  std::vector<double> targets(samples.size());
  if (succeeded == 0) return targets;
  const bool positive = samples.front().cost > 0;
  for (std::size_t i = 0; i < samples.size(); ++i) {
    const std::size_t place = std::min(i, succeeded - 1);
    targets[i] = positive ? std::log(samples[place].cost)
                          : static_cast<double>(place) / static_cast<double>(samples.size());
  }
  return targets;
}

}  // namespace

CostModel::CostModel(const Space& space, std::span<const std::uint32_t> parameters)
    : set_(space.configurations()),
      parameters_(parameters.begin(), parameters.end()),
      one_row_(parameters.size()),
      choices_(set_.parameter_count()) {
  for (const std::uint32_t parameter : parameters_) {
    std::vector<float>& row_features = features_.emplace_back();
    const std::vector<Value>& values = space.parameters()[parameter].values;
    const bool numbers = std::none_of(values.begin(), values.end(), [](const Value& value) {
      return std::holds_alternative<std::string>(value);
    });
    for (std::size_t i = 0; i < values.size(); ++i)
      row_features.push_back(numbers ? static_cast<float>(Scalar::from(values[i]).as_real())
                                     : static_cast<float>(i));
  }
  if (set_.size() > kSmallSpace) return;
  all_rows_.resize(set_.size() * width());
  for (std::uint64_t i = 0; i < set_.size(); ++i)
    write_row(i, std::span(all_rows_).subspan(i * width(), width()));
}

void CostModel::write_row(std::uint64_t index, std::span<float> row) {
  set_.at(index, choices_);
  for (std::size_t i = 0; i < width(); ++i) row[i] = features_[i][choices_[parameters_[i]]];
}

std::span<const float> CostModel::row(std::uint64_t index) {
  if (!all_rows_.empty()) return std::span(all_rows_).subspan(index * width(), width());
  write_row(index, one_row_);
  return one_row_;
}

void CostModel::fit(std::span<const Sample> samples, Random& random) {
  std::vector<Sample> chosen(samples.begin(), samples.end());
  sort_by_cost(chosen);
  if (chosen.size() > kMostSamples) {
    // The cheapest matter; of the rest some are enough.
    random.shuffle(std::span(chosen).subspan(kMostSamples / 2));
    chosen.resize(kMostSamples);
    sort_by_cost(chosen);
  }
  std::vector<float> rows;
  rows.reserve(chosen.size() * width());
  for (const Sample& sample : chosen) {
    const std::span<const float> row_features = row(sample.index);
    rows.insert(rows.end(), row_features.begin(), row_features.end());
  }
  forest_.fit(rows, width(), targets_for(chosen), {}, random);
}

Forest::Prediction CostModel::predict(std::uint64_t index) { return forest_.predict(row(index)); }

}  // namespace kernwright
