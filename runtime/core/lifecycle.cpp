// Flags set by fork and exit handlers, read by every call that would reach the driver.
#include "core/lifecycle.h"

#include "base/errors.h"

#include <pthread.h>

#include <cstdlib>
#include <mutex>

namespace kernwright {
namespace detail {

std::atomic<ProcessPhase> process_phase{ProcessPhase::running};

void throw_driver_forbidden() {
  if (process_phase.load(std::memory_order_relaxed) == ProcessPhase::forked) {
    throw Error(
        "CUDA was initialised in the parent process before fork(); start processes with the "
        "'spawn' method, or use the device only in the children");
  }
  throw Error("the process is exiting: the device cannot be used any more");
}

}  // namespace detail

namespace {

void enter_forked() noexcept {
  detail::process_phase.store(ProcessPhase::forked, std::memory_order_relaxed);
}

// NOTE: exit handlers run in reverse order of registration. Objects with static storage that were
// made after this registration are destroyed before it runs, with the driver still usable; those
// made earlier are destroyed after it and leave their handles to the operating system.
void enter_exiting() noexcept {
  ProcessPhase running = ProcessPhase::running;
  detail::process_phase.compare_exchange_strong(running, ProcessPhase::exiting,
                                                std::memory_order_relaxed);
}

}  // namespace

void watch_process() {
  static std::once_flag once;
  std::call_once(once, [] {
    pthread_atfork(nullptr, nullptr, enter_forked);
    std::atexit(enter_exiting);
  });
}

}  // namespace kernwright
