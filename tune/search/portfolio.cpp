// The searches with a model.
#include "tune/search/portfolio.h"

#include "tune/search/population.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <limits>

namespace kernwright {
static double P(const char* name, double d) {
  const char* v = getenv(name);
  return v ? atof(v) : d;
}
namespace {

constexpr std::uint64_t kSmallSpace = 20000;  // whose configurations are all candidates
constexpr std::size_t kDrawn = 4000;          // candidates of a larger one
constexpr std::array kKappas = {0.0, 0.5, 1.0, 2.0};

}  // namespace

ModelSearch::ModelSearch(const Space& space, const StrategyOptions& options)
    : Strategy(space, options), model_(space, free_parameters()) {}

ModelSearch::Candidate ModelSearch::judge(std::uint64_t index) {
  const Forest::Prediction expected = model_.predict(index);
  return {index, expected.mean, expected.deviation};
}

bool ModelSearch::prepare() {
  static const double kInit = P("INIT", 12);
  if (told() < kInit) return false;
  if (told() >= fitted_with_ + std::max<std::size_t>(1, fitted_with_ / 64) || !model_.is_fitted()) {
    std::vector<CostModel::Sample> samples;
    for (const std::uint64_t index : told_indices()) samples.push_back({index, *cost_of(index)});
    model_.fit(samples, random());
    fitted_with_ = told();
    candidates_.clear();
    if (set().size() <= kSmallSpace) {
      for (std::uint64_t i = 0; i < set().size(); ++i)
        if (is_new(i)) candidates_.push_back(judge(i));
    } else {
      for (std::size_t i = 0; i < kDrawn; ++i) candidates_.push_back(judge(draw()));
    }
  }
  return true;
}

std::optional<std::uint64_t> ModelSearch::most_promising(std::span<const Candidate> candidates,
                                                         double kappa) const {
  double least = std::numeric_limits<double>::infinity();
  std::optional<std::uint64_t> found;
  for (const Candidate& candidate : candidates) {
    const double bound = candidate.mean - kappa * candidate.deviation;
    if (bound >= least || !is_new(candidate.index)) continue;
    least = bound;
    found = candidate.index;
  }
  return found;
}

void Surrogate::propose(std::size_t wanted) {
  if (!prepare()) return;
  while (wanted-- > 0) {
    const auto found = most_promising(candidates(), kKappas[picks_++ % kKappas.size()]);
    if (!found) return;
    take(*found);
  }
}

Portfolio::Arm Portfolio::choose_arm() {
  static const std::array<double, kArms> base = {P("WM", 3), P("WN", 2), P("WO", 2), P("WR", 1)};
  static const double bandit = P("BANDIT", 1);
  std::array<double, kArms> weights = base;
  double sum = 0;
  for (std::size_t arm = 0; arm < kArms; ++arm) {
    const double mean = (credit_[arm] + 1.0) / (pulls_[arm] + 4.0);
    weights[arm] *= std::pow(mean * 4, bandit);
    sum += weights[arm];
  }
  double at = random().uniform() * sum;
  for (std::size_t arm = 0; arm < kArms; ++arm)
    if ((at -= weights[arm]) < 0) return static_cast<Arm>(arm);
  return kRandom;
}

std::optional<std::uint64_t> Portfolio::pick(Arm arm) {
  switch (arm) {
    case kModel:
      return most_promising(candidates(), kKappas[picks_++ % kKappas.size()]);
    case kNeighbours: {
      if (near_.empty()) {
        for (const std::uint64_t elite : elites_)
          for (const std::uint64_t index :
               space().neighbours(set().at(elite), Neighbourhood::hamming))
            if (is_new(index)) near_.push_back(judge(index));
      }
      return most_promising(near_, 0.5);
    }
    case kOffspring: {
      for (int i = 0; i < 20; ++i) {
        const std::uint64_t child =
            differential_offspring(set(), elites_, random().below(elites_.size()), random());
        if (is_new(child)) return child;
      }
      return std::nullopt;
    }
    default:
      return draw_new();
  }
}

void Portfolio::propose(std::size_t wanted) {
  if (!prepare()) return;
  static const double kElites = P("ELITES", 8);
  elites_ = elites(static_cast<std::size_t>(kElites));
  near_.clear();
  if (elites_.empty()) return;
  for (std::size_t tries = 0; wanted > 0 && tries < 100; ++tries) {
    const Arm arm = choose_arm();
    const std::optional<std::uint64_t> found = pick(arm);
    if (!found || !take(*found)) continue;
    proposed_by_[*found] = arm;
    --wanted;
  }
}

void Portfolio::learn(std::uint64_t index, double cost) {
  const auto by = proposed_by_.find(index);
  const bool gain = std::isfinite(cost) && (told() == 1 || cost < least_);
  if (gain) least_ = cost;
  without_gain_ = gain ? 0 : without_gain_ + 1;
  if (by == proposed_by_.end()) return;
  static const double decay = P("DECAY", 0.98);
  for (std::size_t arm = 0; arm < kArms; ++arm) {
    credit_[arm] *= decay;
    pulls_[arm] *= decay;
  }
  pulls_[by->second] += 1;
  const bool good = !elites_.empty() && std::isfinite(cost) && cost <= *cost_of(elites_.back());
  credit_[by->second] += gain ? 1 : good ? 0.3 : 0;
  proposed_by_.erase(by);
}

}  // namespace kernwright
