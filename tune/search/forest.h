// A random forest of regression trees: a cheap model with an estimate of its own uncertainty.
#pragma once

#include "tune/random.h"

#include <cstdint>
#include <span>
#include <utility>
#include <vector>

namespace kernwright {

struct ForestOptions {
  std::size_t trees = 40;
  double feature_share = 0.6;  ///< of the features looked at for each split
  bool bootstrap = true;       ///< each tree from samples drawn with repeats
};

/// Trees over rows of numbers. predict() is const and may run in several threads.
class Forest {
 public:
  struct Prediction {
    double mean = 0;
    double deviation = 0;  ///< between the trees
  };

  /// `rows` are `targets.size()` rows of `width` numbers.
  void fit(std::span<const float> rows, std::size_t width, std::span<const double> targets,
           const ForestOptions& options, Random& random);
  bool empty() const { return roots_.empty(); }
  Prediction predict(std::span<const float> row) const;

 private:
  struct Node {
    std::int32_t feature = -1;  ///< -1: a leaf
    float threshold = 0;        ///< at most this: left
    std::uint32_t left = 0;
    std::uint32_t right = 0;
    float value = 0;
  };
  struct Split;

  std::uint32_t grow(std::span<std::uint32_t> samples, Random& random);
  Split best_split(std::span<const std::uint32_t> samples, Random& random);
  void look_for_split(std::uint32_t feature, double total, Split& best, Random& random) const;

  std::vector<Node> nodes_;
  std::vector<std::uint32_t> roots_;
  std::span<const float> rows_;  // during fit()
  std::span<const double> targets_;
  std::size_t width_ = 0;
  ForestOptions options_;
  std::vector<std::pair<float, double>> column_;  ///< a feature of the samples, with their targets
  std::vector<std::uint32_t> features_;           ///< in random order
};

}  // namespace kernwright
