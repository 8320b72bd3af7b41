// The choice of the next configuration: the common interface of all searches.
#pragma once

#include "tune/random.h"
#include "tune/space.h"

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

namespace kernwright {

struct StrategyOptions {
  std::uint64_t seed = 0;
  std::vector<std::uint64_t> initial = {};  ///< indices of configurations to ask first
};

/// Proposes configurations and learns from their cost. It measures nothing. Results may come late,
/// in another order or never: configurations without a result are pending. The same seed and the
/// same sequence of calls give the same proposals on every machine.
///
/// Configurations are named by their index in the space. Not thread-safe.
class Strategy {
 public:
  /// `space` must outlive it. Throws as Space::configurations() does.
  Strategy(const Space& space, const StrategyOptions& options);
  virtual ~Strategy() = default;
  Strategy(const Strategy&) = delete;
  Strategy& operator=(const Strategy&) = delete;

  /// `count` configurations, never asked or told before; fewer when no more are left.
  std::vector<std::uint64_t> ask(std::size_t count);

  /// The cost of a configuration (a time, say: less is better), nothing for a failed one. Also for
  /// configurations not asked for: results of an earlier search. A second result for the same
  /// configuration replaces the first. Throws InvalidArgument for NaN.
  void tell(std::uint64_t index, std::optional<double> cost);

  const Space& space() const { return space_; }
  std::size_t told() const { return told_.size(); }
  std::size_t pending() const { return seen_.size() - told_.size(); }
  /// The cheapest so far; nothing before the first success.
  std::optional<std::uint64_t> best() const { return best_; }
  std::optional<double> best_cost() const { return best_ ? known_cost(*best_) : std::nullopt; }

 protected:
  /// Calls take() for the next configurations, at most `wanted` times with success. The rest is
  /// drawn at random.
  virtual void propose(std::size_t wanted) = 0;
  /// A result has come; a failure's cost is infinite.
  virtual void learn(std::uint64_t index, double cost);

  /// Adds a configuration to the result of ask(), unless it was asked or told before, or there are
  /// enough.
  bool take(std::uint64_t index);
  bool is_new(std::uint64_t index) const { return !seen_.contains(index); }
  /// The told cost, infinite for a failure; nothing before.
  std::optional<double> known_cost(std::uint64_t index) const;
  /// Indices in the order of tell().
  std::span<const std::uint64_t> told_indices() const { return told_; }
  /// Up to `count` told ones without failures, the cheapest first.
  std::vector<std::uint64_t> elites(std::size_t count) const;

  /// A new one, each equally likely; nothing when none is left.
  std::optional<std::uint64_t> draw_new();
  std::uint64_t draw() { return random_.below(set_.size()); }
  /// A valid configuration with about `changes` parameters different from `index`.
  std::uint64_t mutate(std::uint64_t index, std::size_t changes);

  const ConfigurationSet& set() const { return set_; }
  Random& random() { return random_; }
  /// The parameters with two or more values in the valid configurations.
  std::span<const std::uint32_t> free_parameters() const { return free_; }
  const Choices& used(std::size_t parameter) const { return used_[parameter]; }

 private:
  struct Known {
    double cost = 0;
    bool is_told = false;
  };

  const Space& space_;
  const ConfigurationSet& set_;
  Random random_;
  std::vector<Choices> used_;
  std::vector<std::uint32_t> free_;
  std::vector<std::uint64_t> initial_;  ///< the next one last
  std::unordered_map<std::uint64_t, Known> seen_;
  std::vector<std::uint64_t> told_;
  std::vector<std::uint64_t> rest_;  ///< all new ones, shuffled, once they are less than half
  bool rest_is_made_ = false;
  std::optional<std::uint64_t> best_;
  std::vector<std::uint64_t> asked_;  ///< collected by ask()
  std::size_t wanted_ = 0;
};

/// Names accepted by make_strategy, the default first.
std::span<const std::string_view> strategy_names();

/// Throws NameNotFound for a name outside strategy_names().
std::unique_ptr<Strategy> make_strategy(std::string_view name, const Space& space,
                                        const StrategyOptions& options = {});

}  // namespace kernwright
