// Growing trees: the split with the least remaining variance, at a random place between two values.
#include "tune/search/forest.h"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace kernwright {

struct Forest::Split {
  std::int32_t feature = -1;
  float threshold = 0;
  double gain = 0;
};

void Forest::fit(std::span<const float> rows, std::size_t width, std::span<const double> targets,
                 const ForestOptions& options, Random& random) {
  rows_ = rows;
  width_ = width;
  targets_ = targets;
  options_ = options;
  nodes_.clear();
  roots_.clear();
  if (targets.empty()) return;
  features_.resize(width);
  std::iota(features_.begin(), features_.end(), 0U);
  std::vector<std::uint32_t> samples(targets.size());
  for (std::size_t tree = 0; tree < options.trees; ++tree) {
    for (std::size_t i = 0; i < samples.size(); ++i)
      samples[i] = static_cast<std::uint32_t>(options.bootstrap ? random.below(samples.size()) : i);
    roots_.push_back(grow(samples, random));
  }
  rows_ = {};
  targets_ = {};
}

Forest::Split Forest::best_split(std::span<const std::uint32_t> samples, Random& random) {
  Split best;
  double total = 0;
  for (const std::uint32_t sample : samples) total += targets_[sample];
  auto wanted =
      static_cast<std::size_t>(std::ceil(options_.feature_share * static_cast<double>(width_)));
  // Features with equal values in all samples do not count as tried.
  for (std::size_t i = 0; i < width_ && wanted > 0; ++i) {
    std::swap(features_[i], features_[i + random.below(width_ - i)]);
    const std::uint32_t feature = features_[i];
    column_.clear();
    for (const std::uint32_t sample : samples)
      column_.emplace_back(rows_[sample * width_ + feature], targets_[sample]);
    std::sort(column_.begin(), column_.end());
    if (column_.front().first == column_.back().first) continue;
    --wanted;
    look_for_split(feature, total, best, random);
  }
  return best;
}

void Forest::look_for_split(std::uint32_t feature, double total, Split& best,
                            Random& random) const {
  const auto count = static_cast<double>(column_.size());
  double left = 0;
  for (std::size_t i = 0; i + 1 < column_.size(); ++i) {
    left += column_[i].second;
    const float low = column_[i].first;
    const float high = column_[i + 1].first;
    if (low == high) continue;
    const auto n = static_cast<double>(i + 1);
    const double right = total - left;
    // The part with the squares of the means; the rest of the variance does not depend on the
    // split.
    const double gain = left * left / n + right * right / (count - n) - total * total / count;
    if (best.feature >= 0 && gain <= best.gain) continue;
    const float threshold = low + static_cast<float>(random.uniform()) * (high - low);
    best = {static_cast<std::int32_t>(feature), threshold < high ? threshold : low, gain};
  }
}

std::uint32_t Forest::grow(std::span<std::uint32_t> samples, Random& random) {
  const auto index = static_cast<std::uint32_t>(nodes_.size());
  nodes_.emplace_back();
  double total = 0;
  for (const std::uint32_t sample : samples) total += targets_[sample];
  nodes_[index].value = static_cast<float>(total / static_cast<double>(samples.size()));
  if (samples.size() < 2) return index;
  const Split split = best_split(samples, random);
  if (split.feature < 0) return index;
  const auto feature = static_cast<std::size_t>(split.feature);
  const auto middle = std::partition(samples.begin(), samples.end(), [&](std::uint32_t sample) {
    return rows_[sample * width_ + feature] <= split.threshold;
  });
  const auto left_count = static_cast<std::size_t>(middle - samples.begin());
  const std::uint32_t left = grow(samples.first(left_count), random);
  const std::uint32_t right = grow(samples.subspan(left_count), random);
  nodes_[index].feature = split.feature;
  nodes_[index].threshold = split.threshold;
  nodes_[index].left = left;
  nodes_[index].right = right;
  return index;
}

Forest::Prediction Forest::predict(std::span<const float> row) const {
  double sum = 0;
  double squares = 0;
  for (const std::uint32_t root : roots_) {
    const Node* node = &nodes_[root];
    while (node->feature >= 0)
      node = &nodes_[row[static_cast<std::size_t>(node->feature)] <= node->threshold ? node->left
                                                                                     : node->right];
    const double value = node->value;
    sum += value;
    squares += value * value;
  }
  const auto count = static_cast<double>(std::max<std::size_t>(roots_.size(), 1));
  const double mean = sum / count;
  return {mean, std::sqrt(std::max(0.0, squares / count - mean * mean))};
}

}  // namespace kernwright
