// Shared by all searches: questions and answers so far, new random configurations.
#include "tune/search/strategy.h"

#include "base/errors.h"
#include "base/format.h"
#include "base/nearest_name.h"
#include "tune/search/local_search.h"
#include "tune/search/population.h"
#include "tune/search/portfolio.h"
#include "tune/search/sampling.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

namespace kernwright {

Strategy::Strategy(const Space& space, const StrategyOptions& options)
    : space_(space),
      set_(space.configurations()),
      random_(options.seed),
      used_(set_.used_choices()),
      initial_(options.initial.rbegin(), options.initial.rend()) {
  for (std::uint32_t i = 0; i < used_.size(); ++i)
    if (used_[i].size() > 1) free_.push_back(i);
  for (const std::uint64_t index : initial_)
    if (index >= set_.size())
      throw InvalidArgument(
          format("there is no configuration {}: there are {}", index, set_.size()));
}

std::vector<std::uint64_t> Strategy::ask(std::size_t count) {
  asked_.clear();
  wanted_ = static_cast<std::size_t>(std::min<std::uint64_t>(count, set_.size() - seen_.size()));
  while (asked_.size() < wanted_ && !initial_.empty()) {
    take(initial_.back());
    initial_.pop_back();
  }
  if (asked_.size() < wanted_) propose(wanted_ - asked_.size());
  while (asked_.size() < wanted_) {
    const std::optional<std::uint64_t> index = draw_new();
    if (!index) break;
    take(*index);
  }
  return std::exchange(asked_, {});
}

void Strategy::tell(std::uint64_t index, std::optional<double> cost) {
  if (index >= set_.size())
    throw InvalidArgument(format("there is no configuration {}: there are {}", index, set_.size()));
  if (cost && !(*cost > -std::numeric_limits<double>::infinity()))
    throw InvalidArgument(
        format("a cost is a number, got {}: a configuration that failed has none", *cost));
  const double value = cost.value_or(std::numeric_limits<double>::infinity());
  Known& known = seen_[index];
  if (!std::exchange(known.is_told, true)) told_.push_back(index);
  known.cost = value;
  const bool was_best = best_ == index;
  if (std::isfinite(value) && (!best_ || value < seen_[*best_].cost)) best_ = index;
  if (was_best) {  // its second result may be worse than another's
    const std::vector<std::uint64_t> first = elites(1);
    best_ = first.empty() ? std::nullopt : std::optional(first.front());
  }
  learn(index, value);
}

void Strategy::learn(std::uint64_t, double) {}

bool Strategy::take(std::uint64_t index) {
  if (asked_.size() >= wanted_ || !seen_.try_emplace(index).second) return false;
  asked_.push_back(index);
  return true;
}

std::optional<double> Strategy::known_cost(std::uint64_t index) const {
  const auto found = seen_.find(index);
  if (found == seen_.end() || !found->second.is_told) return std::nullopt;
  return found->second.cost;
}

std::vector<std::uint64_t> Strategy::elites(std::size_t count) const {
  std::vector<std::pair<double, std::uint64_t>> ranked;
  for (const std::uint64_t index : told_) {
    const double cost = seen_.at(index).cost;
    if (std::isfinite(cost)) ranked.emplace_back(cost, index);
  }
  const std::size_t kept = std::min(count, ranked.size());
  std::partial_sort(ranked.begin(), ranked.begin() + static_cast<std::ptrdiff_t>(kept),
                    ranked.end());
  std::vector<std::uint64_t> result;
  for (std::size_t i = 0; i < kept; ++i) result.push_back(ranked[i].second);
  return result;
}

std::optional<std::uint64_t> Strategy::draw_new() {
  if (!rest_is_made_) {
    if (seen_.size() <= set_.size() / 2) {
      std::uint64_t index = draw();
      while (!is_new(index)) index = draw();
      return index;
    }
    rest_is_made_ = true;
    for (std::uint64_t index = 0; index < set_.size(); ++index)
      if (is_new(index)) rest_.push_back(index);
    random_.shuffle(std::span(rest_));
  }
  while (!rest_.empty() && !is_new(rest_.back())) rest_.pop_back();
  return rest_.empty() ? std::nullopt : std::optional(rest_.back());
}

std::uint64_t Strategy::mutate(std::uint64_t index, std::size_t changes) {
  if (free_.empty()) return index;
  Choices choices = set_.at(index);
  for (std::size_t i = 0; i < changes; ++i) {
    const std::uint32_t parameter = free_[random_.below(free_.size())];
    choices[parameter] = used_[parameter][random_.below(used_[parameter].size())];
  }
  return set_.nearest(choices);
}

namespace {

template <typename Kind>
std::unique_ptr<Strategy> make(const Space& space, const StrategyOptions& options) {
  return std::make_unique<Kind>(space, options);
}

struct Maker {
  std::string_view name;
  std::unique_ptr<Strategy> (*make)(const Space&, const StrategyOptions&);
};

constexpr std::array kMakers = {
    Maker{"portfolio", make<Portfolio>},
    Maker{"brute_force", make<BruteForce>},
    Maker{"random", make<RandomSearch>},
    Maker{"greedy_ils", make<GreedyIls>},
    Maker{"annealing", make<Annealing>},
    Maker{"differential_evolution", make<DifferentialEvolution>},
    Maker{"genetic", make<Genetic>},
    Maker{"surrogate", make<Surrogate>},
};

constexpr auto kNames = [] {
  std::array<std::string_view, kMakers.size()> names;
  for (std::size_t i = 0; i < names.size(); ++i) names[i] = kMakers[i].name;
  return names;
}();

}  // namespace

std::span<const std::string_view> strategy_names() { return kNames; }

std::unique_ptr<Strategy> make_strategy(std::string_view name, const Space& space,
                                        const StrategyOptions& options) {
  for (const Maker& maker : kMakers)
    if (maker.name == name) return maker.make(space, options);
  const std::vector<std::string> known(kNames.begin(), kNames.end());
  throw NameNotFound(format("there is no strategy {}{}", name, describe_names(name, known)));
}

}  // namespace kernwright
