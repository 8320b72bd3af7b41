// Iterated local search and annealing; results may come late.
#include "tune/search/local_search.h"

#include <algorithm>
#include <cmath>

namespace kernwright {
namespace {

constexpr unsigned kJumpsBeforeRestart = 4;
constexpr double kCooling = 0.97;
constexpr double kHot = 0.5;
constexpr double kCold = 0.01;
constexpr std::size_t kPatience = 60;

/// How much more `cost` is than `other`, as a part of it; costs may be of any sign.
double relative_excess(double cost, double other) {
  return (cost - other) / std::max(std::fabs(other), 1e-300);
}

}  // namespace

void GreedyIls::stand_on(std::uint64_t index, double cost) {
  here_ = index;
  cost_here_ = cost;
  std::vector<std::uint64_t> all = space().neighbours(set().at(index), Neighbourhood::hamming);
  random().shuffle(std::span(all));
  neighbours_.assign(all.begin(), all.end());
  awaited_.clear();
}

void GreedyIls::jump() {
  constexpr std::size_t kChanges = 3;
  if (cost_here_ < base_cost_) {
    base_ = *here_;
    base_cost_ = cost_here_;
    failed_jumps_ = 0;
  } else if (++failed_jumps_ > kJumpsBeforeRestart) {
    here_.reset();
    return;
  }
  const std::uint64_t target = mutate(base_, kChanges);
  const std::optional<double> cost = known_cost(target);
  if (cost && std::isfinite(*cost)) return stand_on(target, *cost);
  take(target);
  // The search goes on from the first result that comes back.
  here_.reset();
  failed_jumps_ = std::min(failed_jumps_, kJumpsBeforeRestart);
  awaited_ = {target};
}

void GreedyIls::propose(std::size_t wanted) {
  std::size_t steps = 0;
  constexpr std::size_t kMaxSteps = 1000;  // over configurations that are all known
  while (wanted > 0 && here_ && ++steps < kMaxSteps) {
    if (neighbours_.empty()) {
      // If all neighbours are known, the search leaves; else it waits for them.
      if (!awaited_.empty()) return;
      jump();
      continue;
    }
    const std::uint64_t next = neighbours_.front();
    neighbours_.pop_front();
    const std::optional<double> known = known_cost(next);
    if (known && *known < cost_here_) {
      stand_on(next, *known);
    } else if (take(next)) {
      awaited_.push_back(next);
      --wanted;
    }
  }
}

void GreedyIls::learn(std::uint64_t index, double cost) {
  std::erase(awaited_, index);
  if (!std::isfinite(cost)) return;
  if (!here_) {
    const bool is_new_start = failed_jumps_ > kJumpsBeforeRestart || told() == 1;
    if (is_new_start) {
      base_cost_ = cost;
      base_ = index;
      failed_jumps_ = 0;
    }
    stand_on(index, cost);
  } else if (cost < cost_here_) {
    stand_on(index, cost);
  }
}

void Annealing::propose(std::size_t wanted) {
  constexpr std::size_t kTries = 200;
  for (std::size_t i = 0; here_ && wanted > 0 && i < kTries; ++i) {
    const std::uint64_t next = mutate(*here_, 1 + random().below(2));
    if (take(next)) {
      --wanted;
    } else if (const std::optional<double> known = known_cost(next); known && next != *here_) {
      learn(next, *known);
    }
  }
}

void Annealing::learn(std::uint64_t index, double cost) {
  temperature_ = std::max(kCold, temperature_ * kCooling);
  if (!std::isfinite(cost)) return;
  if (!here_ || cost < least_) {
    least_ = cost;
    without_gain_ = 0;
  } else if (++without_gain_ > kPatience) {
    without_gain_ = 0;
    temperature_ = kHot;
  }
  const double excess = here_ ? relative_excess(cost, cost_here_) : 0;
  if (!here_ || excess <= 0 || random().uniform() < std::exp(-excess / temperature_)) {
    here_ = index;
    cost_here_ = cost;
  }
}

}  // namespace kernwright
