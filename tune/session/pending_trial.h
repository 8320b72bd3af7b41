// A trial without an outcome, and its state until then.
#pragma once

#include "tune/configuration_set.h"
#include "tune/session/trial.h"
#include "tune/session/trial_backend.h"

#include <cstdint>
#include <exception>
#include <optional>
#include <vector>

namespace kernwright {

struct PendingTrial {
  enum class Stage : std::uint8_t {
    queued,
    compiling,
    compiled,
    follows,  ///< waits for the trial with the same code
    running,
    ended,
    outside,  ///< measured elsewhere
  };

  Trial trial;
  Stage stage = Stage::queued;
  Choices choices{};
  TrialWorkRef work{};
  CompiledTrial compiled{};
  StopFlag stop{};
  std::exception_ptr error{};
  std::optional<double> expected_s{};  ///< of its compile
  double dispatched_s = 0;             ///< to the lane that it is on, or was last
  bool is_late = false;                ///< its compile was stopped at its deadline
  std::optional<double> cost{};
  std::vector<std::uint64_t> followers{};  ///< numbers of those with the same code
};

}  // namespace kernwright
