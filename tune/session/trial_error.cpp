// Exceptions as data: by their type, and by the trial's stage.
#include "tune/session/trial_error.h"

#include "base/errors.h"
#include "jit/compile/compile_wait.h"
#include "worker/child_process.h"

namespace kernwright {
namespace {

TrialStatus status_at(TrialStage stage) {
  switch (stage) {
    case TrialStage::plan:
      return TrialStatus::constraints;
    case TrialStage::compile:
      return TrialStatus::compile;
    case TrialStage::run:
      return TrialStatus::runtime;
  }
  return TrialStatus::runtime;
}

}  // namespace

std::optional<TrialFailure> trial_failure(const std::exception_ptr& error, TrialStage stage,
                                          bool is_isolated) {
  try {
    std::rethrow_exception(error);
  } catch (const NvrtcNotFound&) {
    return std::nullopt;
  } catch (const DriverNotFound&) {
    return std::nullopt;
  } catch (const DeviceNotFound&) {
    return std::nullopt;
  } catch (const ProcessNotStarted&) {
    return std::nullopt;
  } catch (const Interrupted&) {
    return std::nullopt;
  } catch (const DeviceLost& lost) {
    if (!is_isolated) return std::nullopt;
    return TrialFailure{status_at(stage), lost.what()};
  } catch (const Timeout& timeout) {
    return TrialFailure{TrialStatus::timeout, timeout.what()};
  } catch (const CompileError& failed) {
    return TrialFailure{TrialStatus::compile, failed.what()};
  } catch (const LaunchConfigError& refused) {
    return TrialFailure{TrialStatus::constraints, refused.what()};
  } catch (const Error& failed) {
    return TrialFailure{status_at(stage), failed.what()};
  } catch (const std::bad_alloc&) {
    return TrialFailure{status_at(stage), "this process has no memory left for it"};
  } catch (...) {
    return std::nullopt;
  }
}

bool is_cancelled(const std::exception_ptr& error) {
  try {
    std::rethrow_exception(error);
  } catch (const Cancelled&) {
    return true;
  } catch (...) {
    return false;
  }
}

}  // namespace kernwright
