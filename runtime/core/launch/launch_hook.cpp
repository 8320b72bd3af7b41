// The hook of each thread.
#include "core/launch/launch_hook.h"

#include <utility>

namespace kernwright {
namespace {

thread_local LaunchHook* thread_hook = nullptr;

}  // namespace

LaunchHook* current_launch_hook() noexcept { return thread_hook; }

LaunchHookScope::LaunchHookScope(LaunchHook* hook) noexcept
    : previous_(std::exchange(thread_hook, hook)) {}
LaunchHookScope::~LaunchHookScope() { thread_hook = previous_; }

}  // namespace kernwright
