// Ends a launch early: a signal, or more time than it may take.
#pragma once

#include "base/fault.h"

#include <atomic>
#include <chrono>
#include <string>
#include <thread>

namespace kernwright::sim {

/// For one launch; made on the launching thread. Thread-safe.
class StopRequest {
 public:
  using Clock = std::chrono::steady_clock;

  /// `is_interrupted` may be null; only the launching thread calls it, at most once in 50 ms, with
  /// locks of the library held. `limit` 0: none.
  StopRequest(bool (*is_interrupted)(), std::chrono::seconds limit) noexcept
      : is_interrupted_(is_interrupted), limit_(limit) {}

  /// Each thread with blocks calls it now and then. True from the first reason to stop on. Some
  /// 20 ns.
  bool is_due() noexcept {
    if (reason_.load(std::memory_order_relaxed) != FaultKind::none) return true;
    if (std::this_thread::get_id() != owner_) return false;
    const Clock::time_point now = Clock::now();
    return now >= next_look_ && look(now);
  }

  /// `interrupted` or `timeout`, once due.
  FaultKind reason() const noexcept { return reason_; }
  std::string message() const;

 private:
  static constexpr std::chrono::milliseconds kInterval{50};

  bool look(Clock::time_point now) noexcept;

  bool (*const is_interrupted_)();
  const std::chrono::seconds limit_;
  const std::thread::id owner_ = std::this_thread::get_id();
  const Clock::time_point begin_ = Clock::now();
  Clock::time_point next_look_ = begin_ + kInterval;  ///< the owner's
  std::atomic<FaultKind> reason_ = FaultKind::none;
};

}  // namespace kernwright::sim
