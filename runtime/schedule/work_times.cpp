// Quartiles of measured times; a decision that one outlier does not make.
#include "schedule/work_times.h"

#include <algorithm>

namespace kernwright::schedule {

void WorkTimes::add(Time busy) noexcept {
  mean_ = count_ == 0 ? busy : (3 * mean_ + busy) / 4;
  latest_[count_++ % kKept] = busy;
}

Time WorkTimes::quartile() const noexcept {
  std::array<Time, kKept> sorted = latest_;
  const auto place = sorted.begin() + static_cast<std::ptrdiff_t>(kept() / 4);
  std::nth_element(sorted.begin(), place, sorted.begin() + static_cast<std::ptrdiff_t>(kept()));
  return count_ == 0 ? Time(0) : *place;
}

Time WorkTimes::least() const noexcept {
  return count_ == 0 ? Time(0) : *std::min_element(latest_.begin(), latest_.begin() + kept());
}

void CutChoice::note(const WorkKey& piece, double pieces) noexcept {
  if (piece != piece_) judged_ = 0;  // pieces of another size, with measurements of their own
  piece_ = piece;
  pieces_ = pieces;
  cannot_ = pieces == 0;
}

bool CutChoice::stays_whole(const WorkTimes& whole, const WorkTimes* pieces, Time now) noexcept {
  if (cannot_) return true;
  if (now < until_) return stays_;
  if (pieces_ == 0 || pieces == nullptr || pieces->count() < judged_ + kSure) return false;
  const bool pays = seconds(pieces->quartile()) * pieces_ <= kMostCost * seconds(whole.quartile());
  if (!pays && awaited_ == 0) awaited_ = whole.count() + kWholeRuns;
  if (!pays && whole.count() < awaited_) return true;  // it is measured once more
  awaited_ = 0;
  judged_ = pieces->count();
  until_ = now + kHolds;
  stays_ = !pays;
  return stays_;
}

}  // namespace kernwright::schedule
