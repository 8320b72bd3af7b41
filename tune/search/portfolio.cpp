// The searches with a model.
#include "tune/search/portfolio.h"

#include "tune/search/population.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace kernwright {
namespace {

constexpr std::uint64_t kAllCandidates = 20000;  // largest space with all as candidates
constexpr std::size_t kDrawn = 4000;             // candidates of a larger space
constexpr std::size_t kFirst = 12;               // results before the first model
constexpr std::array kKappas = {0.0, 0.5, 1.0, 2.0};

constexpr std::size_t kElites = 8;
constexpr std::array kWeights = {3.0, 2.0, 2.0, 1.0};  // of the arms, in their order
constexpr double kForgetting = 0.98;                   // of the arms' merits, with each result
constexpr double kEliteMerit = 0.3;                    // a new best has merit 1
constexpr std::size_t kPlacePatience = 30;             // results without a new best
constexpr std::size_t kMostLeft = 4;      // most abandoned places; then all are open again
constexpr std::size_t kLeftDistance = 2;  // most different parameters near an abandoned place
constexpr std::size_t kArmTries = 100;    // attempts, because arms may repeat known configurations

}  // namespace

ModelSearch::ModelSearch(const Space& space, const StrategyOptions& options)
    : Strategy(space, options), model_(space, free_parameters()) {}

ModelSearch::Candidate ModelSearch::judge(std::uint64_t index) {
  const Forest::Prediction expected = model_.predict(index);
  return {index, expected.mean, expected.deviation};
}

bool ModelSearch::prepare() {
  if (told() < kFirst) return false;
  if (told() <= fitted_count_ + fitted_count_ / 64) return true;
  std::vector<CostModel::Sample> samples;
  for (const std::uint64_t index : told_indices()) samples.push_back({index, *known_cost(index)});
  model_.fit(samples, random());
  fitted_count_ = told();
  candidates_.clear();
  if (set().size() <= kAllCandidates) {
    for (std::uint64_t i = 0; i < set().size(); ++i)
      if (is_new(i)) candidates_.push_back(judge(i));
  } else {
    for (std::size_t i = 0; i < kDrawn; ++i) candidates_.push_back(judge(draw()));
  }
  return true;
}

void Surrogate::propose(std::size_t wanted) {
  if (!prepare()) return;
  while (wanted-- > 0) {
    const double kappa = kKappas[picks_++ % kKappas.size()];
    const auto found = most_promising(candidates(), kappa, [](std::uint64_t) { return true; });
    if (!found) return;
    take(*found);
  }
}

Portfolio::Arm Portfolio::choose_arm() {
  std::array<double, kArms> weights{};
  double sum = 0;
  for (std::size_t arm = 0; arm < kArms; ++arm) {
    // Merits begin at a quarter for each.
    weights[arm] = kWeights[arm] * (merits_[arm] + 1.0) / (pulls_[arm] + 4.0);
    sum += weights[arm];
  }
  double at = random().uniform() * sum;
  for (std::size_t arm = 0; arm < kArms; ++arm)
    if ((at -= weights[arm]) < 0) return static_cast<Arm>(arm);
  return kRandom;
}

std::optional<std::uint64_t> Portfolio::pick(Arm arm) {
  switch (arm) {
    case kModel: {
      const bool elsewhere = !left_.empty() && random().uniform() < 0.5;
      return most_promising(candidates(), kKappas[picks_++ % kKappas.size()],
                            [&](std::uint64_t index) { return !elsewhere || !was_left(index); });
    }
    case kNeighbours:
      if (near_.empty()) look_around();
      return most_promising(near_, 0.5, [](std::uint64_t) { return true; });
    case kOffspring: {
      const std::size_t target = random().below(elites_.size());
      return differential_offspring(set(), elites_, target, random());
    }
    default:
      return draw_new();
  }
}

void Portfolio::look_around() {
  for (const std::uint64_t elite : elites_)
    for (const std::uint64_t index : space().neighbours(set().at(elite), Neighbourhood::hamming))
      if (is_new(index)) near_.push_back(judge(index));
}

bool Portfolio::was_left(std::uint64_t index) const {
  if (left_.empty()) return false;
  const Choices choices = set().at(index);
  return std::any_of(left_.begin(), left_.end(), [&](const Choices& place) {
    std::size_t differing = 0;
    for (std::size_t i = 0; i < choices.size(); ++i) differing += choices[i] != place[i] ? 1 : 0;
    return differing <= kLeftDistance;
  });
}

void Portfolio::choose_elites() {
  elites_ = elites(left_.empty() ? kElites : told());
  if (!left_.empty()) {
    std::erase_if(elites_, [&](std::uint64_t index) { return was_left(index); });
    if (elites_.empty()) elites_ = elites(kElites);
    elites_.resize(std::min(elites_.size(), kElites));
  }
  near_.clear();
}

void Portfolio::propose(std::size_t wanted) {
  if (!prepare()) return;
  if (without_gain_ > kPlacePatience && !elites_.empty()) {
    without_gain_ = 0;
    if (left_.size() == kMostLeft) {
      left_.clear();
    } else {
      left_.push_back(set().at(elites_.front()));
    }
  }
  choose_elites();
  if (elites_.empty()) return;
  for (std::size_t tries = 0; wanted > 0 && tries < kArmTries; ++tries) {
    const Arm arm = choose_arm();
    const std::optional<std::uint64_t> found = pick(arm);
    if (!found || !take(*found)) continue;
    proposed_by_[*found] = arm;
    --wanted;
  }
}

void Portfolio::learn(std::uint64_t index, double cost) {
  const bool gain = best() == index && !(cost >= least_);
  if (gain) {
    least_ = cost;
    left_.clear();
    without_gain_ = 0;
  } else {
    ++without_gain_;
  }
  const auto by = proposed_by_.find(index);
  if (by == proposed_by_.end()) return;
  for (std::size_t arm = 0; arm < kArms; ++arm) {
    merits_[arm] *= kForgetting;
    pulls_[arm] *= kForgetting;
  }
  pulls_[by->second] += 1;
  if (gain) {
    merits_[by->second] += 1;
  } else if (!elites_.empty() && cost <= known_cost(elites_.back()).value_or(0)) {
    merits_[by->second] += kEliteMerit;
  }
  proposed_by_.erase(by);
}

}  // namespace kernwright
