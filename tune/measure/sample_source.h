// The source of single samples.
#pragma once

#include "jit/compile/compile_wait.h"
#include "tune/measure/measure_plan.h"
#include "tune/measure/timed_work.h"

#include <optional>

namespace kernwright {

struct Sample {
  double ms = 0;                      ///< of one run
  std::optional<double> clock_mhz{};  ///< of the SMs, where it could be read
  bool gave_up = false;               ///< the gate was not opened in time, so the time is wrong
  double queue_ms = 0;                ///< of take_many(): the host's time for queuing all runs
};

/// A device, or a test's substitute. Not thread-safe. Calls throw the errors left by the work on
/// the device; Timeout, Cancelled or Interrupted as `limits` say.
class SampleSource {
 public:
  virtual ~SampleSource() = default;

  virtual Sample take(const TimedWork& work, CachePolicy policy, bool is_gated,
                      const WaitLimits& limits) = 0;
  /// Runs without a flush, each behind its own restore; the sample's time is the mean.
  virtual Sample take_many(const TimedWork& work, int runs, const WaitLimits& limits) = 0;
  /// From here on a sample is taken from so many runs in a graph; 0: from single runs again.
  virtual void set_batch(const TimedWork& work, int batch) = 0;
  /// Runs in each sample.
  virtual int batch() const noexcept = 0;
};

}  // namespace kernwright
