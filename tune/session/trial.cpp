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

}  // namespace kernwright
