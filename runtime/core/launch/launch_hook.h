// A thread's launches handed to an object that decides how they are queued.
#pragma once

#include "core/launch/launch_config.h"
#include "core/launch/launch_site.h"

#include <span>

namespace kernwright {

class Kernel;

/// Takes the place of Kernel::launch() on a thread. The configuration has passed Kernel::check();
/// `arguments` points to the bytes of each parameter, valid during the call. A hook queues the work
/// itself, whole or in parts: launches from within the call go to the driver.
class LaunchHook {
 public:
  virtual ~LaunchHook() = default;
  /// Throws whatever the caller of the launch shall get.
  virtual void launch(const Kernel& kernel, const LaunchConfig& config,
                      std::span<void* const> arguments, const LaunchSite& site) = 0;
};

/// The hook of this thread; null without one, and within a call of it.
LaunchHook* current_launch_hook() noexcept;

/// Makes `hook` (null: none) the hook of this thread for as long as the scope lives. Scopes nest;
/// the innermost hook alone is asked. The hook must outlive the scope.
class LaunchHookScope {
 public:
  explicit LaunchHookScope(LaunchHook* hook) noexcept;
  ~LaunchHookScope();
  LaunchHookScope(const LaunchHookScope&) = delete;
  LaunchHookScope& operator=(const LaunchHookScope&) = delete;

 private:
  LaunchHook* previous_;
};

}  // namespace kernwright
