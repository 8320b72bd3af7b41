// Searches with a model: the surrogate alone, and the portfolio, which is the default.
#pragma once

#include "tune/search/cost_model.h"
#include "tune/search/strategy.h"

#include <array>
#include <limits>
#include <unordered_map>

namespace kernwright {

/// Common to both: a model fitted anew after enough results, and candidates to rank.
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
  /// The new, fitting candidate with the least mean - kappa * deviation.
  template <typename Fits>
  std::optional<std::uint64_t> most_promising(std::span<const Candidate> candidates, double kappa,
                                              Fits&& fits) const {
    double least = std::numeric_limits<double>::infinity();
    std::optional<std::uint64_t> found;
    for (const Candidate& candidate : candidates) {
      const double bound = candidate.mean - kappa * candidate.deviation;
      if (bound >= least || !is_new(candidate.index) || !fits(candidate.index)) continue;
      least = bound;
      found = candidate.index;
    }
    return found;
  }

 private:
  CostModel model_;
  std::vector<Candidate> candidates_;
  std::size_t fitted_count_ = 0;
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

/// Several ways to propose: the forest's bound, neighbours of the best ones as ranked by the
/// forest, offspring of differential evolution, and random configurations. Successful ways are used
/// more often. When nothing has got better for a while, the search leaves the place: a part of its
/// proposals then comes from further away.
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
  void choose_elites();
  void look_around();
  bool was_left(std::uint64_t index) const;

  std::array<double, kArms> merits_{};
  std::array<double, kArms> pulls_{};
  std::unordered_map<std::uint64_t, Arm> proposed_by_;
  std::vector<std::uint64_t> elites_;  ///< the cheapest, without those near an abandoned place
  std::vector<Candidate> near_;        ///< neighbours of the elites
  std::vector<Choices> left_;
  std::size_t picks_ = 0;
  std::size_t without_gain_ = 0;
  double least_ = std::numeric_limits<double>::infinity();
};

}  // namespace kernwright
