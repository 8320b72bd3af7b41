// A thread's launches handed to an object that decides when and how they are queued.
#pragma once

#include "core/launch/launch_config.h"
#include "core/launch/launch_site.h"

#include <span>

namespace kernwright {

class Graph;
class Kernel;

/// Takes the place of launches on a thread. A hook queues the work itself, whole or in parts:
/// launches from within a call go to the hook outside of it, the outermost one's to the driver.
class LaunchHook {
 public:
  virtual ~LaunchHook() = default;
  /// For Kernel::launch(). The configuration has passed Kernel::check(); `arguments` points to the
  /// bytes of each parameter, valid during the call. Throws whatever the caller of the launch shall
  /// get.
  virtual void launch(const Kernel& kernel, const LaunchConfig& config,
                      std::span<void* const> arguments, const LaunchSite& site) = 0;
  /// For Graph::launch(), with no lock of the graph held; by default the whole graph.
  virtual void launch_graph(Graph& graph, const Stream& stream, const LaunchSite& site);
};

/// Makes `hook` (null: none) the hook of this thread for as long as the scope lives. Scopes nest;
/// the innermost hook is asked first. The hook must outlive the scope.
class LaunchHookScope {
 public:
  explicit LaunchHookScope(LaunchHook* hook) noexcept : hook_(hook), outer_(innermost) {
    innermost = this;
  }
  ~LaunchHookScope() { innermost = outer_; }
  LaunchHookScope(const LaunchHookScope&) = delete;
  LaunchHookScope& operator=(const LaunchHookScope&) = delete;

 private:
  friend class LaunchHookCall;
  friend LaunchHook* current_launch_hook() noexcept;

  LaunchHook* const hook_;
  LaunchHookScope* const outer_;
  static inline constinit thread_local LaunchHookScope* innermost = nullptr;
};

/// The hook that this thread's next launch goes to; null without one.
inline LaunchHook* current_launch_hook() noexcept {
  const LaunchHookScope* const scope = LaunchHookScope::innermost;
  return scope != nullptr ? scope->hook_ : nullptr;
}

/// A call of the current hook: while it lives, launches go to the hook outside of that one.
class LaunchHookCall {
 public:
  LaunchHookCall() noexcept : scope_(LaunchHookScope::innermost) {
    LaunchHookScope::innermost = scope_->outer_;
  }
  ~LaunchHookCall() { LaunchHookScope::innermost = scope_; }
  LaunchHookCall(const LaunchHookCall&) = delete;
  LaunchHookCall& operator=(const LaunchHookCall&) = delete;

 private:
  LaunchHookScope* const scope_;
};

}  // namespace kernwright
