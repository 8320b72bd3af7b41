// Searches by combining configurations of a population.
#pragma once

#include "tune/search/strategy.h"

#include <map>

namespace kernwright {

/// A new member: of one of the population (its place is `target`), of the difference of two others
/// and of the best, rounded to values and to a valid configuration.
std::uint64_t differential_offspring(const ConfigurationSet& set,
                                     std::span<const std::uint64_t> members, std::size_t target,
                                     Random& random);

/// Differential evolution: a place of the population goes to the better configuration.
class DifferentialEvolution : public Strategy {
 public:
  using Strategy::Strategy;

 protected:
  void propose(std::size_t wanted) override;
  void learn(std::uint64_t index, double cost) override;

 private:
  struct Member {
    std::uint64_t index;
    double cost;
  };

  std::vector<Member> members_;
  std::map<std::uint64_t, std::uint64_t> targets_;  ///< the member that the asked one would replace
  std::size_t next_target_ = 0;
};

/// A genetic algorithm: tournaments choose two parents, their values are mixed, some change.
class Genetic : public Strategy {
 public:
  using Strategy::Strategy;

 protected:
  void propose(std::size_t wanted) override;
  void learn(std::uint64_t index, double cost) override;

 private:
  struct Member {
    std::uint64_t index;
    double cost;
  };

  std::uint64_t choose_parent();

  std::vector<Member> members_;  ///< the best so far, by cost
};

}  // namespace kernwright
