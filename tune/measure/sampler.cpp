// The order of a sample.
#include "tune/measure/sampler.h"

#include "base/errors.h"
#include "base/format.h"
#include "core/device.h"
#include "tune/measure/stopwatch.h"

#include <thread>

namespace kernwright {
namespace {

using Clock = std::chrono::steady_clock;

// %globaltimer ticks once a microsecond on some GPUs.
constexpr std::uint64_t kLeastClockSpan = 100'000;   // ns
constexpr std::uint64_t kMostClockSpan = 5'000'000;  // ns

/// Opens the gate also when the work throws: no wait for its limit.
class OpenAtEnd {
 public:
  explicit OpenAtEnd(StreamGate& gate) : gate_(gate) {}
  ~OpenAtEnd() { gate_.open(); }
  OpenAtEnd(const OpenAtEnd&) = delete;
  OpenAtEnd& operator=(const OpenAtEnd&) = delete;

 private:
  StreamGate& gate_;
};

}  // namespace

Sampler::Sampler(Device& device, const ObjectCode& gate_code, std::chrono::nanoseconds gate_limit)
    : device_(device),
      stream_(Stream::create(device)),
      begin_(device),
      end_(device),
      gate_(device, gate_code),
      gate_limit_(gate_limit) {
  // The first launch of a kernel may load code, and loading waits for the device: not behind a
  // gate.
  gate_.close(stream_, 0);
  gate_.stamp(stream_);
  gate_.open();
  stream_.synchronize();
}

void Sampler::queue(const TimedWork& work) {
  const std::size_t copy = next_copy_ % work.copies;
  next_copy_ = copy + 1;
  work.queue(stream_, copy);
}

void Sampler::wait(const TimedWork& work, const WaitLimits& limits) const {
  constexpr std::chrono::milliseconds kSpin{2};
  constexpr std::chrono::microseconds kPause{50};
  const Clock::time_point start = Clock::now();
  Clock::time_point checked = start;
  while (!stream_.done()) {
    const Clock::time_point now = Clock::now();
    if (now - start < kSpin) continue;  // most kernels are shorter: no time is lost to sleep
    std::this_thread::sleep_for(kPause);
    if (now - checked < kWaitSlice / 2) continue;
    check_wait(limits, format("measuring {}", work.name));
    checked = now;
  }
  stream_.synchronize();
  check_wait(limits, format("measuring {}", work.name));
}

void Sampler::set_batch(const TimedWork& work, int batch) {
  graph_.reset();
  batch_ = 1;
  if (batch == 0) return;
  Graph graph(device_);
  graph.capture(stream_, [&] {
    for (int i = 0; i < batch; ++i) queue(work);
  });
  graph_ = std::move(graph);
  batch_ = batch;
}

void Sampler::between_events(const TimedWork& work) {
  begin_.record(stream_);
  if (graph_) {
    graph_->launch(stream_);
  } else {
    queue(work);
  }
  end_.record(stream_);
}

/// A short run gives too little: then the interval begins with the end of an earlier sample, but
/// not over a long pause: an SM may sleep in it without counting.
std::optional<double> Sampler::read_clock(bool was_gated) {
  const ClockStamp end = gate_.end();
  std::optional<double> mhz;
  if (was_gated) mhz = clock_mhz(gate_.begin(), end, kLeastClockSpan);
  const bool is_recent = end.nanoseconds - earlier_.nanoseconds < kMostClockSpan;
  if (!mhz && is_recent) mhz = clock_mhz(earlier_, end, kLeastClockSpan);
  if (mhz || !is_recent || end.sm != earlier_.sm) earlier_ = end;
  return mhz;
}

Sample Sampler::take(const TimedWork& work, CachePolicy policy, bool is_gated,
                     const WaitLimits& limits) {
  if (work.restore) work.restore(stream_);
  if (policy == CachePolicy::cold) {
    if (!flush_) flush_.emplace(device_, stream_);
    flush_->queue(stream_);
  }
  wait(work, limits);
  if (is_gated) {
    gate_.close(stream_, static_cast<std::uint64_t>(gate_limit_.count()));
    const OpenAtEnd opener(gate_);
    between_events(work);
    gate_.stamp(stream_);
  } else {
    between_events(work);
    gate_.stamp(stream_);
  }
  wait(work, limits);
  return {.ms = end_.elapsed_ms(begin_) / static_cast<double>(batch_),
          .clock_mhz = read_clock(is_gated),
          .gave_up = is_gated && gate_.begin().gave_up != 0};
}

Sample Sampler::take_many(const TimedWork& work, int runs, const WaitLimits& limits) {
  gate_.close(stream_, 0);  // for its stamp
  gate_.open();
  begin_.record(stream_);
  const Stopwatch queuing;
  for (int i = 0; i < runs; ++i) {
    if (work.restore) work.restore(stream_);
    if (graph_) {
      graph_->launch(stream_);
    } else {
      queue(work);
    }
  }
  const double queue_ms = 1000 * queuing.elapsed().count();
  end_.record(stream_);
  gate_.stamp(stream_);
  wait(work, limits);
  return {.ms = end_.elapsed_ms(begin_) / static_cast<double>(runs) / static_cast<double>(batch_),
          .clock_mhz = read_clock(true),
          .queue_ms = queue_ms};
}

}  // namespace kernwright
