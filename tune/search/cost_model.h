// A forest's prediction of costs, learnt from measured configurations.
#pragma once

#include "tune/search/forest.h"
#include "tune/space.h"

#include <cstdint>
#include <span>
#include <utility>
#include <vector>

namespace kernwright {

/// Costs are learnt by their logarithm, or by their rank if some are not positive; a failure counts
/// as the worst success. Not thread-safe.
class CostModel {
 public:
  struct Sample {
    std::uint64_t index;
    double cost;  ///< infinite for a failure
  };

  /// `parameters` are those with different choices in different configurations.
  CostModel(const Space& space, std::span<const std::uint32_t> parameters);

  void fit(std::span<const Sample> samples, Random& random);
  /// In units of its own; less is better.
  Forest::Prediction predict(std::uint64_t index);

 private:
  std::size_t width() const { return parameters_.size(); }
  std::span<const float> row(std::uint64_t index);
  void write_row(std::uint64_t index, std::span<float> row);

  const ConfigurationSet& set_;
  std::vector<std::uint32_t> parameters_;
  std::vector<std::vector<float>> features_;  ///< of each parameter, by choice
  std::vector<float> all_rows_;               ///< of every configuration, where the space is small
  std::vector<float> one_row_;
  Choices choices_;
  Forest forest_;
};

}  // namespace kernwright
