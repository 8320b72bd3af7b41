// One trial at a time for each lane, with limits for each of its steps.
#include "tune/session/trial_runner.h"

#include "base/errors.h"
#include "base/format.h"
#include "worker/worker.h"

#include <algorithm>
#include <chrono>
#include <cstdint>

namespace kernwright {
namespace {

// Relative to the best sample: above these, more samples or a warmer clock tell nothing new.
constexpr double kSlow = 1.15, kFar = 1.5;

/// Adds the time until it goes.
class Spent {
 public:
  Spent(const SessionClock& clock, double& seconds)
      : clock_(clock), seconds_(seconds), since_(clock.now()) {}
  ~Spent() { seconds_ += clock_.now() - since_; }
  Spent(const Spent&) = delete;

 private:
  const SessionClock& clock_;
  double& seconds_;
  double since_;
};

}  // namespace

void TrialRunner::compile(PendingTrial& pending) const {
  pending.trial.compile_started_s = clock_.now();
  try {
    WaitLimits limits;
    limits.stop = pending.stop;
    pending.compiled = backend_.compile(*pending.work, limits);
  } catch (...) {
    pending.error = std::current_exception();
  }
  pending.trial.compile_ended_s = clock_.now();
}

void TrialRunner::run(PendingTrial& pending, unsigned lane,
                      std::optional<double> best_sample) const {
  try {
    try {
      run_once(pending, lane, best_sample);
    } catch (const WorkerLost&) {
      pending.trial.times_ms.clear();
      run_once(pending, lane, best_sample);
    }
  } catch (...) {
    pending.error = std::current_exception();
  }
}

/// A configuration before this one may have cost the device its process.
void TrialRunner::prepare(unsigned lane, const WaitLimits& limits) const {
  constexpr std::chrono::seconds kPatience{120};
  try {
    backend_.prepare(lane, limits.within(kPatience));
  } catch (const Timeout& timeout) {
    throw DeviceNotFound(
        format("device {} of the session does not start: {}; look whether another "
               "program keeps it busy",
               lane, timeout.what()));
  }
}

void TrialRunner::run_once(PendingTrial& pending, unsigned lane,
                           std::optional<double> best_sample) const {
  Trial& trial = pending.trial;
  WaitLimits limits;
  limits.stop = stop_;
  const auto patience =
      std::chrono::milliseconds(static_cast<std::int64_t>(1000 * options_.run_timeout_s));
  prepare(lane, limits);
  std::optional<std::string> wrong;
  {
    const Spent spent(clock_, trial.verify_s);
    trial.resources = backend_.load(lane, *pending.work, limits.within(patience));
    wrong = backend_.verify(lane, *pending.work, kFirstLaunches, limits.within(patience));
  }
  if (!wrong) {
    {
      const Spent spent(clock_, trial.measure_s);
      sample(pending, lane, best_sample, limits);
    }
    const Spent spent(clock_, trial.verify_s);
    wrong = backend_.verify(lane, *pending.work, kLastLaunches, limits.within(patience));
  }
  if (!wrong) return;
  trial.status = TrialStatus::correctness;
  trial.error = *wrong;
  trial.times_ms.clear();
  trial.metrics.clear();
  pending.cost.reset();
}

void TrialRunner::sample(PendingTrial& pending, unsigned lane, std::optional<double> best_sample,
                         const WaitLimits& limits) const {
  Trial& trial = pending.trial;
  const auto patience =
      std::chrono::milliseconds(static_cast<std::int64_t>(1000 * options_.run_timeout_s));
  const bool is_capped = best_sample && trial.index != options_.default_index;
  const double cap_ms = is_capped ? kFar * *best_sample : 0;
  const auto take = [&](unsigned count) {
    TrialSamples more =
        backend_.sample(lane, *pending.work, count, cap_ms, limits.within(patience));
    trial.times_ms.insert(trial.times_ms.end(), more.times_ms.begin(), more.times_ms.end());
    for (const auto& [name, value] : more.metrics) trial.metrics[name] = value;
    pending.cost = more.cost;
  };
  take(backend_.has_clock() ? std::min(2U, options_.samples) : 1);
  const bool is_far =
      best_sample && !trial.times_ms.empty() &&
      *std::min_element(trial.times_ms.begin(), trial.times_ms.end()) > kSlow * *best_sample;
  if (backend_.has_clock() && !is_far && options_.samples > 2) take(options_.samples - 2);
}

}  // namespace kernwright
