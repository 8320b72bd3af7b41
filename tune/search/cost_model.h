// What a forest expects configurations to cost, learnt from those that were measured.
#pragma once

#include "tune/search/forest.h"
#include "tune/space.h"

#include <cstdint>
#include <span>
#include <utility>
#include <vector>

namespace kernwright {

/// Costs are learnt by their rank and, where all are positive, by their logarithm: how they are
/// scaled does not matter, and a failure counts as the worst of all. Not thread-safe.
class CostModel {
 public:
  struct Sample {
    std::uint64_t index;
    double cost;  ///< infinite for a failure
  };

  /// `parameters` are those whose choices tell configurations apart.
  CostModel(const Space& space, std::span<const std::uint32_t> parameters);

  void fit(std::span<const Sample> samples, Random& random);
  bool is_fitted() const { return !forest_.empty(); }
  /// In units of its own; less is better.
  Forest::Prediction predict(std::uint64_t index);

 private:
  std::span<const float> row(std::uint64_t index);
  void write_row(std::uint64_t index, std::span<float> row);

  const Space& space_;
  const ConfigurationSet& set_;
  std::vector<std::uint32_t> parameters_;
  std::vector<std::vector<float>> features_;  ///< of each parameter, by choice
  std::size_t width_ = 0;
  std::vector<float> all_rows_;  ///< of every configuration, where the space is small
  std::vector<float> one_row_;
  Choices choices_;
  Forest forest_;
};

}  // namespace kernwright
