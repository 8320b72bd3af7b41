// Proposals first, then the strategy's own.
#include "tune/session/questions.h"

#include "base/errors.h"
#include "base/format.h"

#include <string>
#include <utility>

namespace kernwright {
namespace {

constexpr std::uint64_t kProposeEvery = 8;  // answers between two calls of `propose`

std::string strategy_name(const Space& space, const SessionOptions& options) {
  if (!options.strategy.empty()) return options.strategy;
  const Budget& budget = options.budget;
  const bool is_open = !budget.seconds && !budget.gpu_seconds && !budget.target;
  const bool fits = budget.evaluations ? *budget.evaluations >= space.size() : is_open;
  return std::string(fits ? "brute_force" : strategy_names().front());
}

std::unique_ptr<Strategy> session_strategy(const Space& space, const SessionOptions& options) {
  options.budget.validate();
  StrategyOptions wanted{.seed = options.seed};
  if (options.default_index) wanted.initial.push_back(*options.default_index);
  for (const std::uint64_t index : options.initial) {
    if (index != options.default_index) wanted.initial.push_back(index);
  }
  const std::uint64_t size = space.size();
  for (const std::uint64_t index : wanted.initial) {
    if (index >= size)
      throw InvalidArgument(format("there is no configuration {}: the space has {}", index, size));
  }
  return make_strategy(strategy_name(space, options), space, wanted);
}

}  // namespace

Questions::Questions(const Space& space, const SessionOptions& options)
    : space_(space),
      options_(options),
      strategy_(session_strategy(space, options)),
      proposed_(options.initial.begin(), options.initial.end()) {}

bool Questions::has_fixed_order() const {
  const std::string name = strategy_name(space_, options_);
  return !options_.propose && (name == "brute_force" || name == "random");
}

void Questions::take_proposals() {
  if (!options_.propose || answered_ < propose_after_) return;
  propose_after_ = answered_ + kProposeEvery;
  for (const std::uint64_t index : options_.propose()) {
    if (index < space_.size() && !asked_.contains(index)) proposed_.push_back(index);
  }
}

std::optional<std::uint64_t> Questions::next() {
  take_proposals();
  // The strategy already asks for the first ones; these came later.
  while (options_.propose && !proposed_.empty()) {
    const std::uint64_t index = proposed_.front();
    proposed_.pop_front();
    if (!asked_.contains(index)) return index;
  }
  while (true) {
    const std::vector<std::uint64_t> asked = strategy_->ask(1);
    if (asked.empty()) return std::nullopt;
    if (!asked_.contains(asked.front())) return asked.front();
  }
}

std::optional<std::uint64_t> Questions::ask() {
  const std::optional<std::uint64_t> index = next();
  if (index) {
    asked_.insert(*index);
  } else {
    is_exhausted_ = true;
  }
  return index;
}

void Questions::answer_oldest(const Trial& trial) {
  strategy_->tell(trial.index, trial.score);
  open_.pop_front();
  ++answered_;
}

std::optional<std::uint64_t> Questions::take_best_known() {
  if (std::exchange(is_best_taken_, true)) return std::nullopt;
  const std::pair<const std::uint64_t, Trial>* best = nullptr;
  for (const auto& known : options_.known) {
    const std::optional<double>& score = known.second.score;
    if (known.second.is_correct() && score && (best == nullptr || *score < *best->second.score))
      best = &known;
  }
  return best == nullptr ? std::nullopt : std::optional(best->first);
}

Scout::Scout(const Space& space, const SessionOptions& options)
    : strategy_(make_strategy(strategy_name(space, options), space, {.seed = ~options.seed})) {}

std::optional<std::uint64_t> Scout::next(const std::vector<std::unique_ptr<Trial>>& trials,
                                         const std::function<bool(std::uint64_t)>& is_taken) {
  for (; told_ < trials.size(); ++told_)
    strategy_->tell(trials[told_]->index, trials[told_]->score);
  while (true) {
    const std::vector<std::uint64_t> asked = strategy_->ask(1);
    if (asked.empty()) return std::nullopt;
    if (!is_taken(asked.front())) return asked.front();
  }
}

}  // namespace kernwright
