// T4's words.
#include "tune/session/trial.h"

#include <algorithm>
#include <array>

namespace kernwright {
namespace {

constexpr std::array<std::string_view, 6> kStatusNames{"correct", "correctness", "compile",
                                                       "runtime", "timeout",     "constraints"};

}  // namespace

std::string_view trial_status_name(TrialStatus status) noexcept {
  return kStatusNames[static_cast<std::size_t>(status)];
}

std::optional<TrialStatus> find_trial_status(std::string_view name) noexcept {
  const auto found = std::find(kStatusNames.begin(), kStatusNames.end(), name);
  if (found == kStatusNames.end()) return std::nullopt;
  return static_cast<TrialStatus>(found - kStatusNames.begin());
}

void Trial::adopt(const Trial& leader) {
  status = leader.status;
  error = leader.error;
  times_ms = leader.times_ms;
  median_ms = leader.median_ms;
  interval_ms = leader.interval_ms;
  metrics = leader.metrics;
  score = leader.score;
  same_as = leader.number;
}

}  // namespace kernwright
