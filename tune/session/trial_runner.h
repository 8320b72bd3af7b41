// The work of lanes on a trial: compiling, verifying and sampling.
#pragma once

#include "tune/session/pending_trial.h"
#include "tune/session/session.h"
#include "tune/session/session_clock.h"

#include <optional>

namespace kernwright {

/// Its methods are for the threads of lanes. They do not throw: errors are in PendingTrial::error.
class TrialRunner {
 public:
  /// All must outlive it. `stop` ends runs; compiles have flags of their own.
  TrialRunner(TrialBackend& backend, const SessionOptions& options, const SessionClock& clock,
              StopFlag stop)
      : backend_(backend), options_(options), clock_(clock), stop_(std::move(stop)) {}

  void compile(PendingTrial& pending) const;
  /// Runs again after a lost worker: a third party may be the cause, and a crash would repeat.
  /// Takes only a few samples of a trial far behind `best_sample`.
  void run(PendingTrial& pending, unsigned lane, std::optional<double> best_sample) const;

 private:
  void run_once(PendingTrial& pending, unsigned lane, std::optional<double> best_sample) const;
  void prepare(unsigned lane, const WaitLimits& limits) const;
  void sample(PendingTrial& pending, unsigned lane, std::optional<double> best_sample,
              const WaitLimits& limits) const;

  TrialBackend& backend_;
  const SessionOptions& options_;
  const SessionClock& clock_;
  StopFlag stop_;
};

}  // namespace kernwright
