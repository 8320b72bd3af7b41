// Warming up, sampling until the median is known, and waiting for a throttled clock.
#pragma once

#include "tune/measure/measurement.h"
#include "tune/measure/sample_source.h"
#include "tune/measure/stopwatch.h"

#include <optional>

namespace kernwright {

class EnergyMeter;

/// Remembers between measurements whether the device is warm. Not thread-safe.
class MeasureLoop {
 public:
  explicit MeasureLoop(SampleSource& source) : source_(source) {}

  /// As Timer::measure() does on a GPU. With a `meter` the runs' energy is measured, too.
  Measurement run(const TimedWork& work, const MeasurePlan& plan, const EnergyMeter* meter,
                  const WaitLimits& limits);
  /// Whether the device was idle long enough for lower clocks.
  bool was_idle() const;
  /// Records work of the device until now, for callers with their own samples.
  void mark_busy() { last_busy_.emplace(); }
  /// As in run(), for callers with their own samples.
  void warm_up_for(const TimedWork& work, const MeasurePlan& plan, const WaitLimits& limits);

 private:
  double first_runs(const TimedWork& work, const MeasurePlan& plan, const WaitLimits& limits);
  /// One sample, if the plan has a cap and the sample is above it.
  std::optional<double> above_cap(const TimedWork& work, const MeasurePlan& plan,
                                  const WaitLimits& limits);
  void warm_up(const TimedWork& work, const MeasurePlan& plan, double run_ms,
               const WaitLimits& limits);
  void take_samples(Measurement& m, const TimedWork& work, const MeasurePlan& plan,
                    const WaitLimits& limits);
  bool wait_for_clock(const TimedWork& work, const MeasurePlan& plan, Seconds& waited,
                      const WaitLimits& limits);
  void measure_energy(Measurement& m, const EnergyMeter& meter, const TimedWork& work,
                      const MeasurePlan& plan, const WaitLimits& limits);

  SampleSource& source_;
  double steady_mhz_ = 0;  ///< of the last warm-up; 0: not known
  std::optional<Stopwatch> last_busy_;
};

}  // namespace kernwright
