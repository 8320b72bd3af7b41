// Whether this process may still call the driver: not after fork(), not once it is exiting.
#pragma once

#include <atomic>

namespace kernwright {

enum class ProcessPhase : int {
  running,
  forked,   ///< a child of a process that had initialised CUDA; its driver state is unusable
  exiting,  ///< exit() has begun; the driver may be gone at any moment
};

namespace detail {
extern std::atomic<ProcessPhase> process_phase;
[[noreturn]] void throw_driver_forbidden();
}  // namespace detail

/// Starts to watch for fork() and exit(). Called by Runtime just after the first driver call; a
/// fork before it leaves the child free to initialise on its own. Idempotent, thread-safe.
void watch_process();

/// False in a forked child and during exit: destructors then leave everything as it is.
inline bool may_call_driver() noexcept {
  return detail::process_phase.load(std::memory_order_relaxed) == ProcessPhase::running;
}

/// Throws Error with what to do in a forked child, and during exit. Costs one load.
inline void require_driver_allowed() {
  if (!may_call_driver()) detail::throw_driver_forbidden();
}

}  // namespace kernwright
