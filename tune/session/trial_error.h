// The outcome of a trial for an exception.
#pragma once

#include "tune/session/trial.h"

#include <exception>

namespace kernwright {

/// The stage of a trial at its failure.
enum class TrialStage : std::uint8_t { plan, compile, run };

struct TrialFailure {
  TrialStatus status;
  std::string message;
};

/// Nothing for failures common to all configurations: no compiler, device or worker, a signal, and
/// without isolation a lost device.
std::optional<TrialFailure> trial_failure(const std::exception_ptr& error, TrialStage stage,
                                          bool is_isolated = true);

/// Whether the error comes from a stop request.
bool is_cancelled(const std::exception_ptr& error);

}  // namespace kernwright
