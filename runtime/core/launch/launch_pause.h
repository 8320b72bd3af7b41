// A wait in front of a launch, and how a thread lets others go on meanwhile.
#pragma once

#include <atomic>

namespace kernwright {

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
