// Takes single samples: one run between two events, in the order that keeps the host out of it.
#pragma once

#include "core/event.h"
#include "core/graph.h"
#include "tune/measure/cache_flush.h"
#include "tune/measure/stream_gate.h"
#include "tune/measure/timer.h"

#include <chrono>
#include <optional>

namespace kernwright {

struct Sample {
  double ms = 0;                      ///< of one run
  std::optional<double> clock_mhz{};  ///< of the SMs, where it could be read
  bool gave_up = false;               ///< the gate was not opened in time
};

/// Of one GPU. Not thread-safe.
class Sampler {
 public:
  /// A gate gives up after `gate_limit`, which is longer than any launch may take the host.
  Sampler(Device& device, const ObjectCode& gate_code,
          std::chrono::nanoseconds gate_limit = std::chrono::seconds(1));

  Device& device() const noexcept { return device_; }
  const Stream& stream() const noexcept { return stream_; }

  /// The policy `graph`: from here on samples are taken from this many runs in a graph; 0: from
  /// single runs again.
  void set_batch(const TimedWork& work, int batch);
  int batch() const noexcept { return graph_ ? batch_ : 1; }

  Sample take(const TimedWork& work, CachePolicy policy, bool is_gated, const WaitLimits& limits);
  /// Runs without a gate and a flush, each behind its own restore; the sample's time is the mean.
  Sample take_many(const TimedWork& work, int runs, const WaitLimits& limits);

  /// Queues one run, with the next copy of the inputs.
  void queue(const TimedWork& work);
  /// Waits for the stream. Throws what the work left there; Timeout or Cancelled as `limits` say.
  void wait(const TimedWork& work, const WaitLimits& limits) const;

 private:
  void between_events(const TimedWork& work);
  std::optional<double> read_clock(bool was_gated);

  Device& device_;
  Stream stream_;
  Event begin_, end_;
  StreamGate gate_;
  std::chrono::nanoseconds gate_limit_;
  std::optional<CacheFlush> flush_;  ///< made for the first cold sample
  std::optional<Graph> graph_;
  int batch_ = 1;
  std::size_t next_copy_ = 0;
  ClockStamp last_stamp_{};
};

}  // namespace kernwright
