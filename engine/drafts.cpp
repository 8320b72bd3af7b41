// Compares steps with drafts and steps without them.
#include "engine/drafts.h"

#include <algorithm>
#include <limits>
#include <utility>

namespace kernwright::engine {

namespace {

constexpr std::int32_t kTrials = 4;        // measured steps of each way before they are compared
constexpr std::int32_t kPlainEvery = 128;  // where drafts pay, a step without them
constexpr double kDraftedEvery = 32;       // at most, where drafts do not pay
constexpr double kFollowedEvery = 128;     // of a draft model, which has to catch up then
constexpr double kProbeShare = 0.01;       // of the time goes to steps that are slower
constexpr double kFirstCheck = 4;          // steps after a change; twice as many to each next check
// Weights of new numbers: of a step's time, and of accepted drafts, for their sequence and for new
// sequences.
constexpr double kNewTime = 0.25;
constexpr float kNewCount = 0.25f, kNewCountOfAll = 0.02f;

}  // namespace

bool DraftPolicy::wants(const Bucket& plain, double accepted) {
  if (options_.always) return true;
  Costs& costs = costs_[plain];
  if (std::exchange(costs.owed, false)) return true;
  if (costs.drafted.steps < kTrials) return true;
  if (costs.plain.steps < kTrials) return false;
  const double ratio = costs.drafted.seconds / costs.plain.seconds;
  const bool pays = 1 + accepted > ratio;
  const double least = options_.has_model() ? kFollowedEvery : kDraftedEvery;
  if (std::exchange(costs.pays, pays) != pays) {
    costs.waited = 0;
    costs.trusted = pays ? kFirstCheck : std::numeric_limits<double>::infinity();
  }
  const double period = pays ? kPlainEvery : std::max(least, (ratio - 1 - accepted) / kProbeShare);
  if (++costs.waited < std::min(period, costs.trusted)) return pays;
  costs.waited = 0;
  costs.trusted *= 2;
  return !pays;
}

void DraftPolicy::measure(const Bucket& bucket, double seconds) {
  Costs& costs = costs_[{bucket.rows, bucket.rows, bucket.features, 0}];
  Cost& cost = bucket.drafts > 0 ? costs.drafted : costs.plain;
  // The first launch of a graph takes longer. A busy host makes steps longer, never shorter, so the
  // least time of the other trials counts.
  if (++cost.steps <= 2) {
    cost.seconds = seconds;
  } else if (cost.steps <= kTrials) {
    cost.seconds = std::min(cost.seconds, seconds);
  } else if (bucket.drafts == 0 && costs.pays && seconds < cost.seconds) {
    // A check: the host was busy when steps without drafts seemed slow.
    cost.seconds = seconds;
  } else {  // a host that was busy elsewhere says little about the step
    cost.seconds += kNewTime * (std::min(seconds, 2 * cost.seconds) - cost.seconds);
  }
}

void DraftPolicy::observe(float& expectation, std::int32_t accepted) noexcept {
  const auto count = static_cast<float>(accepted);
  expectation += kNewCount * (count - expectation);
  expectation_ += kNewCountOfAll * (count - expectation_);
}

}  // namespace kernwright::engine
