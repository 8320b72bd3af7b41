// A list of threads inside the library, and the exit handler that stops them there.
#include "jit/compile/exit_guard.h"

#include <pthread.h>
#include <signal.h>
#include <ucontext.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <mutex>
#include <thread>
#include <vector>

#include "base/per_process.h"
#include "jit/compile/library_code.h"

namespace kernwright {
namespace {

/// Threads that cannot be stopped within this time are left alone.
constexpr std::chrono::milliseconds kPatience{200};

struct Guarded {
  Guarded(pthread_t t, CodeRange c) : thread(t), code(c) {}
  pthread_t thread;
  CodeRange code;
  std::atomic<bool> is_stopped = false;
};

struct Registry {
  std::mutex mutex;
  std::vector<Guarded*> threads;
  std::vector<std::uintptr_t> libraries;  ///< whose exits are watched, by where their code begins
};

Registry& registry() { return per_process<Registry>(); }

thread_local Guarded* mine = nullptr;

int stop_signal() { return SIGRTMAX - 3; }

/// The instruction that a signal interrupted; 0 where this machine's layout is not known.
std::uintptr_t interrupted_at(const void* context) {
  const auto* state = static_cast<const ucontext_t*>(context);
#if defined(__x86_64__)
  return static_cast<std::uintptr_t>(state->uc_mcontext.gregs[REG_RIP]);
#elif defined(__aarch64__)
  return state->uc_mcontext.pc;
#else
  (void)state;
  return 0;
#endif
}

/// Stops the thread for good, but only inside the library itself: within malloc, say, it would take
/// a lock along that the rest of the process needs.
void stop_here(int, siginfo_t*, void* context) {
  Guarded* const self = mine;
  if (self == nullptr || !self->code.contains(interrupted_at(context))) return;
  self->is_stopped = true;
  while (true) ::pause();
}

void stop_all() {
  Registry& all = registry();
  const std::lock_guard lock(all.mutex);  // whoever leaves the library meanwhile waits here
  if (all.threads.empty()) return;
  struct sigaction action {};
  action.sa_sigaction = stop_here;
  action.sa_flags = SA_SIGINFO | SA_RESTART;
  if (::sigaction(stop_signal(), &action, nullptr) != 0) return;
  const auto deadline = std::chrono::steady_clock::now() + kPatience;
  bool is_running = true;
  while (is_running && std::chrono::steady_clock::now() < deadline) {
    is_running = false;
    for (const Guarded* guarded : all.threads) {
      if (guarded->is_stopped || ::pthread_equal(guarded->thread, ::pthread_self())) continue;
      is_running = true;
      ::pthread_kill(guarded->thread, stop_signal());
    }
    if (is_running) std::this_thread::sleep_for(std::chrono::microseconds(200));
  }
}

void let_signal_in() {
  sigset_t set;
  ::sigemptyset(&set);
  ::sigaddset(&set, stop_signal());
  ::pthread_sigmask(SIG_UNBLOCK, &set, nullptr);
}

}  // namespace

ExitGuard::ExitGuard(const void* function) {
  auto guarded = std::make_unique<Guarded>(::pthread_self(), code_around(function));
  let_signal_in();
  Registry& all = registry();
  const std::lock_guard lock(all.mutex);
  // Registered behind the library's own handlers, and so called before them.
  if (std::find(all.libraries.begin(), all.libraries.end(), guarded->code.begin) ==
      all.libraries.end()) {
    all.libraries.push_back(guarded->code.begin);
    std::atexit(stop_all);
  }
  all.threads.push_back(guarded.get());
  mine = guarded.release();
}

ExitGuard::~ExitGuard() {
  Guarded* const guarded = mine;
  if (guarded == nullptr) return;
  Registry& all = registry();
  const std::lock_guard lock(all.mutex);
  std::erase(all.threads, guarded);
  mine = nullptr;
  delete guarded;
}

}  // namespace kernwright
