// Takes single samples: one run between two events, in an order without waits for the host.
#pragma once

#include "core/event.h"
#include "core/graph/graph.h"
#include "tune/measure/cache_flush.h"
#include "tune/measure/sample_source.h"
#include "tune/measure/stream_gate.h"

#include <chrono>
#include <optional>

namespace kernwright {

/// Samples on one GPU. Not thread-safe.
class Sampler final : public SampleSource {
 public:
  /// A gate gives up after `gate_limit`; this must be longer than the host needs for any launch.
  Sampler(Device& device, const ObjectCode& gate_code,
          std::chrono::nanoseconds gate_limit = std::chrono::seconds(1));

  Device& device() const noexcept { return device_; }
  const Stream& stream() const noexcept { return stream_; }

  Sample take(const TimedWork& work, CachePolicy policy, bool is_gated,
              const WaitLimits& limits) override;
  Sample take_many(const TimedWork& work, int runs, const WaitLimits& limits) override;
  void set_batch(const TimedWork& work, int batch) override;
  int batch() const noexcept override { return batch_; }

 private:
  /// Queues one run, with the next copy of the inputs.
  void queue(const TimedWork& work);
  void wait(const TimedWork& work, const WaitLimits& limits) const;
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
  ClockStamp earlier_{};  ///< the end of an earlier sample
};

}  // namespace kernwright
