// What stands between a thread and its launches: a scheduler that counts, paces and cancels them.
#pragma once

#include <atomic>
#include <cstdint>

namespace kernwright {

class Stream;

/// Told of each launch of one thread, of a kernel or a graph. The device's context is current.
class LaunchGate {
 public:
  /// In front of a launch on `stream` (empty: the legacy stream). It may wait. When it throws,
  /// nothing is launched. `work` tells kernels and graphs apart; a kernel has `blocks`, a graph 0.
  virtual void before(const void* work, std::uint64_t blocks, const Stream& stream) = 0;
  /// The driver took the launch.
  virtual void after(const Stream& stream) = 0;

 protected:
  ~LaunchGate() = default;
};

namespace detail {
inline constinit thread_local LaunchGate* launch_gate = nullptr;
}  // namespace detail

/// The gate of this thread; null without one.
inline LaunchGate* launch_gate() noexcept { return detail::launch_gate; }

/// Makes `gate` that of this thread while it lives.
class LaunchGateScope {
 public:
  explicit LaunchGateScope(LaunchGate* gate) noexcept : before_(detail::launch_gate) {
    detail::launch_gate = gate;
  }
  ~LaunchGateScope() { detail::launch_gate = before_; }
  LaunchGateScope(const LaunchGateScope&) = delete;
  LaunchGateScope& operator=(const LaunchGateScope&) = delete;

 private:
  LaunchGate* const before_;
};

/// How a thread lets others go on while it waits in front of a launch: an interpreter's lock.
struct PauseHooks {
  void* (*leave)() noexcept;      ///< null: this thread held nothing
  void (*enter)(void*) noexcept;  ///< takes back what leave() gave up
};

namespace detail {
inline constinit std::atomic<const PauseHooks*> pause_hooks = nullptr;
}  // namespace detail

/// For the whole process; `hooks` lives for good.
inline void set_pause_hooks(const PauseHooks& hooks) noexcept { detail::pause_hooks = &hooks; }

/// A wait in front of a launch. The thread holds no lock of this library at its beginning and end.
class LaunchPause {
 public:
  LaunchPause() noexcept : hooks_(detail::pause_hooks.load()) {
    if (hooks_ != nullptr) left_ = hooks_->leave();
  }
  ~LaunchPause() {
    if (left_ != nullptr) hooks_->enter(left_);
  }
  LaunchPause(const LaunchPause&) = delete;
  LaunchPause& operator=(const LaunchPause&) = delete;

 private:
  const PauseHooks* const hooks_;
  void* left_ = nullptr;
};

}  // namespace kernwright
