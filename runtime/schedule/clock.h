// The time of a scheduler: the host's, or one set by a test.
#pragma once

#include <atomic>
#include <chrono>

namespace kernwright::schedule {

using Time = std::chrono::nanoseconds;  ///< since the beginning of a clock

constexpr double seconds(Time time) noexcept { return std::chrono::duration<double>(time).count(); }
constexpr Time from_seconds(double value) noexcept {
  return std::chrono::duration_cast<Time>(std::chrono::duration<double>(value));
}

/// Never goes back. Thread-safe.
class Clock {
 public:
  virtual ~Clock() = default;
  virtual Time now() const noexcept = 0;
};

/// The host's steady clock, from 0 at its construction.
class SteadyClock final : public Clock {
 public:
  Time now() const noexcept override { return std::chrono::steady_clock::now() - begin_; }

 private:
  const std::chrono::steady_clock::time_point begin_ = std::chrono::steady_clock::now();
};

/// Stands still until it is told to advance.
class ManualClock final : public Clock {
 public:
  Time now() const noexcept override { return Time(now_.load(std::memory_order_relaxed)); }
  /// Throws InvalidArgument for a negative time.
  void advance(Time by);

 private:
  std::atomic<Time::rep> now_{0};
};

}  // namespace kernwright::schedule
