// Searches from a configuration to its neighbours.
#pragma once

#include "tune/search/strategy.h"

#include <deque>

namespace kernwright {

/// Greedy iterated local search: the first better neighbour is the next place to stand; where there
/// is none, a few parameters of the best place change at random, and after some such jumps without
/// success the search begins anew.
class GreedyIls : public Strategy {
 public:
  using Strategy::Strategy;

 protected:
  void propose(std::size_t wanted) override;
  void learn(std::uint64_t index, double cost) override;

 private:
  void stand_on(std::uint64_t index, double cost);
  void jump();

  std::optional<std::uint64_t> here_;
  double cost_here_ = 0;
  std::uint64_t base_ = 0;  ///< the best place since the search began anew
  double base_cost_ = 0;
  std::deque<std::uint64_t> neighbours_;  ///< of here_, not yet looked at
  std::vector<std::uint64_t> awaited_;    ///< asked, not yet told
  unsigned failed_jumps_ = 0;
};

/// Simulated annealing: the probability of accepting a costlier neighbour falls with the relative
/// difference and with time; the temperature rises again when nothing improves.
class Annealing : public Strategy {
 public:
  using Strategy::Strategy;

 protected:
  void propose(std::size_t wanted) override;
  void learn(std::uint64_t index, double cost) override;

 private:
  std::optional<std::uint64_t> here_;
  double cost_here_ = 0;
  double temperature_ = 0.5;
  std::size_t without_gain_ = 0;
  double least_ = 0;
};

}  // namespace kernwright
