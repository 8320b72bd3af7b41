// Which outcome of a trial an exception is.
#pragma once

#include "tune/session/trial.h"

#include <exception>

namespace kernwright {

/// What a trial was at when it failed.
enum class TrialStage : std::uint8_t { plan, compile, run };

struct TrialFailure {
  TrialStatus status;
  std::string message;
};

/// Nothing for failures that all configurations share: no compiler, device or worker, a signal, and
/// without isolation a lost device.
std::optional<TrialFailure> trial_failure(const std::exception_ptr& error, TrialStage stage,
                                          bool is_isolated = true);

/// Whether somebody stopped what threw it.
bool is_cancelled(const std::exception_ptr& error);

}  // namespace kernwright
