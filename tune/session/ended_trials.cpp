// The best is known at any time.
#include "tune/session/ended_trials.h"

#include <algorithm>

namespace kernwright {

const Trial& EndedTrials::add(const Trial& ended) {
  trials_.push_back(std::make_unique<Trial>(ended));
  const Trial& trial = *trials_.back();
  by_number_[trial.number] = &trial;
  if (!trial.same_as) gpu_s_ += trial.gpu_s();
  if (trial.is_correct() && (best_ == nullptr || *trial.score < *best_->score ||
                             (*trial.score == *best_->score && trial.index < best_->index))) {
    best_ = &trial;
  }
  return trial;
}

const Trial* EndedTrials::find(std::uint64_t number) const {
  const auto found = by_number_.find(number);
  return found == by_number_.end() ? nullptr : found->second;
}

const Trial* EndedTrials::deliver() {
  return all_delivered() ? nullptr : trials_[delivered_++].get();
}

SessionResult EndedTrials::result(std::optional<std::uint64_t> default_index) const {
  SessionResult result;
  result.evaluations = trials_.size();
  if (best_ == nullptr) return result;
  result.best = best_->index;
  result.median_ms = best_->median_ms;
  result.interval_ms = best_->interval_ms;
  result.score = best_->score;
  for (const auto& trial : trials_) {
    if (trial->score == best_->score) result.ties.push_back(trial->index);
    if (trial->index != default_index) continue;
    result.default_ms = trial->median_ms;
    result.default_score = trial->score;
  }
  std::sort(result.ties.begin(), result.ties.end());
  return result;
}

}  // namespace kernwright
