// How long a thread waits for a compile: deadlines, cancellation, signals.
#pragma once

#include "base/errors.h"

#include <atomic>
#include <chrono>
#include <memory>
#include <optional>
#include <string>

namespace kernwright {

/// Somebody asked the compile to stop. Nothing was stored.
class Cancelled : public Error {
 public:
  using Error::Error;
};

/// Becomes true once, from any thread.
using StopFlag = std::shared_ptr<std::atomic<bool>>;

/// Until when a thread waits. A value.
struct WaitLimits {
  std::optional<std::chrono::steady_clock::time_point> deadline;
  std::chrono::milliseconds timeout{0};  ///< what led to the deadline, for the message
  StopFlag stop;                         ///< may be null

  /// With a deadline `limit` from now, unless the present one is sooner.
  WaitLimits within(std::optional<std::chrono::milliseconds> limit) const;
};

/// Every wait for a compile in this thread and scope ends at these limits, also for a compile of
/// another thread. Scopes nest; the innermost counts.
class WaitScope {
 public:
  explicit WaitScope(WaitLimits limits);
  ~WaitScope();
  WaitScope(const WaitScope&) = delete;
  WaitScope& operator=(const WaitScope&) = delete;

 private:
  WaitLimits limits_;
  const WaitLimits* outer_;
};

/// The limits of the innermost scope of this thread; none outside of all.
WaitLimits current_wait_limits();

/// `check` tells whether a signal to end waits was received. Every waiting thread calls it, with no
/// lock held; it must be safe on any. Null: none. For bindings of languages with signal handlers of
/// their own.
using InterruptCheck = bool (*)();
void set_interrupt_check(InterruptCheck check) noexcept;

/// Throws Timeout, Cancelled or Interrupted when this thread must stop waiting for `what`
/// ("compiling kernel.cu"). Call with no lock held.
void check_wait(const WaitLimits& limits, const std::string& what);

/// The longest wait of a thread between two calls of check_wait().
inline constexpr std::chrono::milliseconds kWaitSlice{20};

}  // namespace kernwright
