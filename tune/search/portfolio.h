// Searches with a model: the surrogate alone, and the portfolio that is the default.
#pragma once

#include "tune/search/cost_model.h"
#include "tune/search/strategy.h"

#include <array>
#include <unordered_map>

namespace kernwright {

/// What both have: a model that is fitted anew when enough was told, and candidates to rank.
class ModelSearch : public Strategy {
 public:
  ModelSearch(const Space& space, const StrategyOptions& options);

 protected:
  struct Candidate {
    std::uint64_t index;
    double mean;
    double deviation;
  };

  /// False while too little was told.
  bool prepare();
  /// Candidates from all over the space, with predictions of the last prepare().
  std::span<const Candidate> candidates() const { return candidates_; }
  Candidate judge(std::uint64_t index);
  /// The new candidate whose mean - kappa * deviation is least.
  std::optional<std::uint64_t> most_promising(std::span<const Candidate> candidates,
                                              double kappa) const;

 private:
  CostModel model_;
  std::vector<Candidate> candidates_;
  std::size_t fitted_with_ = 0;
};

/// A random forest's lower confidence bound alone.
class Surrogate : public ModelSearch {
 public:
  using ModelSearch::ModelSearch;

 protected:
  void propose(std::size_t wanted) override;

 private:
  std::size_t picks_ = 0;
};

/// Several ways to propose, of which those are used more often that brought something:
/// the forest's bound, neighbours of the best that the forest likes, offspring of differential
/// evolution, configurations at random. When nothing gets better, the search looks elsewhere.
class Portfolio : public ModelSearch {
 public:
  using ModelSearch::ModelSearch;

 protected:
  void propose(std::size_t wanted) override;
  void learn(std::uint64_t index, double cost) override;

 private:
  enum Arm : std::uint8_t { kModel, kNeighbours, kOffspring, kRandom, kArms };

  Arm choose_arm();
  std::optional<std::uint64_t> pick(Arm arm);

  std::array<double, kArms> credit_{};
  std::array<double, kArms> pulls_{};
  std::unordered_map<std::uint64_t, Arm> proposed_by_;
  std::vector<std::uint64_t> elites_;
  std::vector<Candidate> near_;  ///< neighbours of the elites
  std::size_t picks_ = 0;
  std::size_t without_gain_ = 0;
  double least_ = 0;
};

}  // namespace kernwright
