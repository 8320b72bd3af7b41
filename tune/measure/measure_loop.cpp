// The order of a measurement.
#include "tune/measure/measure_loop.h"

#include "base/format.h"
#include "tune/measure/energy_meter.h"

#include <algorithm>
#include <cmath>
#include <thread>
#include <vector>

namespace kernwright {
namespace {

constexpr Seconds kIdle{0.1};  // after that the clocks of a GPU may have fallen
constexpr double kSteady = 0.01;
constexpr double kGraphMs = 0.2;
constexpr int kMostBatch = 500;
constexpr int kLeastSamples = 3;

/// The number of runs for `ms`, at least one.
int runs_for(double ms, double single_run_ms, int most) {
  if (!(single_run_ms > 0)) return most;
  return static_cast<int>(
      std::clamp(std::ceil(ms / single_run_ms), 1.0, static_cast<double>(most)));
}

bool is_precise(const Measurement& m, double target) {
  const Interval interval = median_interval(m.times_ms);
  return interval.high - interval.low <= 2 * target * median(m.times_ms);
}

}  // namespace

Measurement MeasureLoop::run(const TimedWork& work, const MeasurePlan& plan,
                             const EnergyMeter* meter, const WaitLimits& limits) {
  const Stopwatch watch;
  Measurement m;
  m.policy = plan.policy;
  m.is_gated = plan.is_gated;
  source_.set_batch(work, 0);
  if (const std::optional<double> only = above_cap(work, plan, limits)) {
    m.times_ms.push_back(*only);
    m.summarize();
    mark_busy();
    m.gpu_seconds = watch.elapsed().count();
    return m;
  }
  double run_ms = first_runs(work, plan, limits);
  if (plan.policy == CachePolicy::graph) {
    run_ms = source_.take_many(work, runs_for(kGraphMs, run_ms, 20), limits).ms;
    m.batch = plan.batch > 0 ? plan.batch : runs_for(kGraphMs, run_ms, kMostBatch);
    source_.set_batch(work, m.batch);
    source_.take_many(work, 1, limits);  // the first launch uploads the graph
  }
  take_samples(m, work, plan, limits);
  m.summarize();
  if (meter != nullptr) measure_energy(m, *meter, work, plan, limits);
  source_.set_batch(work, 0);
  mark_busy();
  m.gpu_seconds = watch.elapsed().count();
  return m;
}

void MeasureLoop::warm_up_for(const TimedWork& work, const MeasurePlan& plan,
                              const WaitLimits& limits) {
  source_.set_batch(work, 0);
  first_runs(work, plan, limits);
  mark_busy();
}

bool MeasureLoop::was_idle() const { return !last_busy_ || last_busy_->elapsed() > kIdle; }

/// Adaptive capping, a method of algorithm configurators: a search for the fastest need not know
/// the exact time of a slow one. Not on a GPU after idle time: its clock is low.
std::optional<double> MeasureLoop::above_cap(const TimedWork& work, const MeasurePlan& plan,
                                             const WaitLimits& limits) {
  if (plan.cap_ms <= 0 || plan.policy == CachePolicy::graph || was_idle()) return std::nullopt;
  source_.take_many(work, 1, limits);  // loads what it needs
  const Sample sample = source_.take(work, plan.policy, plan.is_gated, limits);
  mark_busy();
  if (sample.gave_up || sample.ms <= plan.cap_ms) return std::nullopt;
  return sample.ms;
}

/// Loads everything for the first run, warms up, and tells the time of a run in milliseconds. A
/// long run warms the GPU up by itself, and is not repeated. Its time on the host does not count:
/// it may have compiled.
double MeasureLoop::first_runs(const TimedWork& work, const MeasurePlan& plan,
                               const WaitLimits& limits) {
  const Sample first = source_.take_many(work, 1, limits);
  if (first.ms - first.queue_ms >= 1000 * plan.warm_up.count()) {
    steady_mhz_ = first.clock_mhz.value_or(0);
    return first.ms;
  }
  const double run_ms = source_.take_many(work, 1, limits).ms;
  warm_up(work, plan, run_ms, limits);
  return run_ms;
}

/// Runs until the clock is steady under this work: more power means a lower clock. A GPU after idle
/// time gets the plan's whole time.
void MeasureLoop::warm_up(const TimedWork& work, const MeasurePlan& plan, double run_ms,
                          const WaitLimits& limits) {
  const Seconds least = was_idle() ? plan.warm_up : Seconds(0);
  const int runs = runs_for(2, run_ms, 200);
  const Stopwatch watch;
  double last = 0;
  bool is_steady = false;
  while (watch.elapsed() < plan.max_warm_up && (watch.elapsed() < least || !is_steady)) {
    const double now = source_.take_many(work, runs, limits).clock_mhz.value_or(0);
    is_steady = now == 0 || (last > 0 && std::fabs(now / last - 1) < kSteady);
    last = now;
  }
  steady_mhz_ = last;
}

/// After a pause the GPU must be warm again, else its idle clock is measured.
bool MeasureLoop::wait_for_clock(const TimedWork& work, const MeasurePlan& plan, Seconds& waited,
                                 const WaitLimits& limits) {
  if (waited >= plan.max_throttle_wait) return false;
  const Seconds pause = std::clamp(waited, Seconds(0.05), Seconds(0.5));
  for (const Stopwatch sleeping; sleeping.elapsed() < pause;) {
    check_wait(limits, format("measuring {}", work.name));
    std::this_thread::sleep_for(kWaitSlice / 2);
  }
  waited += pause;
  const Stopwatch watch;
  while (watch.elapsed() < plan.warm_up) source_.take_many(work, 1, limits);
  return true;
}

void MeasureLoop::take_samples(Measurement& m, const TimedWork& work, const MeasurePlan& plan,
                               const WaitLimits& limits) {
  const Stopwatch watch;
  std::vector<double> clocks;
  Seconds waited{0};
  for (int taken = 0; static_cast<int>(m.times_ms.size()) < plan.max_samples;) {
    const Sample sample = source_.take(work, plan.policy, m.is_gated, limits);
    if (sample.gave_up) {
      m.is_gated = false;  // the work waits for the device: without a gate, then
      continue;
    }
    const bool is_slow =
        sample.clock_mhz && steady_mhz_ > 0 && *sample.clock_mhz < plan.clock_floor * steady_mhz_;
    if (is_slow && !m.is_throttled) {
      if (wait_for_clock(work, plan, waited, limits)) continue;
      m.is_throttled = true;
    }
    if (taken++ == 0) {
      m.first_ms = sample.ms;
      continue;
    }
    m.times_ms.push_back(sample.ms);
    if (sample.clock_mhz) clocks.push_back(*sample.clock_mhz);
    const auto count = static_cast<int>(m.times_ms.size());
    if (count >= plan.min_samples && is_precise(m, plan.target_noise)) break;
    if (watch.elapsed() - waited >= plan.max_time &&
        count >= std::min(plan.min_samples, kLeastSamples)) {
      break;
    }
  }
  if (!clocks.empty()) m.sm_clock_mhz = median(clocks);
}

void MeasureLoop::measure_energy(Measurement& m, const EnergyMeter& meter, const TimedWork& work,
                                 const MeasurePlan& plan, const WaitLimits& limits) {
  const int runs = runs_for(5, m.median_ms * source_.batch(), 1000);
  const EnergyReading reading = meter.measure(
      [&] {
        source_.take_many(work, runs, limits);
        return runs * source_.batch();
      },
      plan.energy_time);
  m.energy_joules = reading.joules_per_run;
  m.power_watts = reading.watts;
}

}  // namespace kernwright
