// A list of threads inside libraries, and the signal that stops them there.
#include "jit/compile/library_thread.h"

#include <pthread.h>
#include <signal.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <iterator>
#include <mutex>
#include <thread>
#include <vector>

#include "base/per_process.h"
#include "jit/compile/library_code.h"
#include "jit/compile/stack_overflow.h"

namespace kernwright {
namespace {

/// Threads that cannot be stopped within this time are left alone.
constexpr std::chrono::milliseconds kPatience{200};

struct Entered {
  Entered(CodeRange c, const void* t) : thread(::pthread_self()), code(c), task(t) {}
  const pthread_t thread;
  const CodeRange code;
  const void* const task;
  std::atomic<bool> is_stopped = false;
  std::atomic<bool> is_overflown = false;
};

struct Registry {
  std::mutex mutex;
  std::vector<Entered*> threads;
  std::vector<std::uintptr_t> libraries;  ///< whose exits are watched, by where their code begins
};

Registry& registry() { return per_process<Registry>(); }

thread_local Entered* mine = nullptr;

int stop_signal() { return SIGRTMAX - 3; }

/// Stops the thread for good, but only inside the library itself: within malloc, say, it would take
/// a lock along that the rest of the process needs.
void stop_here(int, siginfo_t*, void* context) {
  Entered* const self = mine;
  if (self == nullptr || !self->code.contains(interrupted_at(context))) return;
  self->is_stopped = true;
  while (true) ::pause();
}

/// Likewise: memory is whole, only there is no way on.
void stop_overflown(std::uintptr_t instruction) {
  Entered* const self = mine;
  if (self == nullptr || !self->code.contains(instruction)) return;
  self->is_overflown = true;
  self->is_stopped = true;
  while (true) ::pause();
}

/// False when another part of the program handles the signal. It stays ours: one that is under way
/// would otherwise end the process.
bool take_signal() {
  struct sigaction now {};
  if (::sigaction(stop_signal(), nullptr, &now) != 0) return false;
  if ((now.sa_flags & SA_SIGINFO) != 0) return now.sa_sigaction == stop_here;
  if (now.sa_handler != SIG_DFL) return false;
  struct sigaction action {};
  action.sa_sigaction = stop_here;
  action.sa_flags = SA_SIGINFO | SA_RESTART;
  ::sigfillset(&action.sa_mask);  // a thread that is stopped handles nothing any more
  return ::sigaction(stop_signal(), &action, nullptr) == 0;
}

/// True when all of them are. The caller holds the registry's mutex, at which whoever leaves its
/// library meanwhile waits.
bool stop_threads(const std::vector<Entered*>& threads) {
  if (threads.empty() || !take_signal()) return threads.empty();
  const auto deadline = std::chrono::steady_clock::now() + kPatience;
  bool is_running = true;
  while (is_running && std::chrono::steady_clock::now() < deadline) {
    is_running = false;
    for (const Entered* entered : threads) {
      if (entered->is_stopped || ::pthread_equal(entered->thread, ::pthread_self())) continue;
      is_running = true;
      ::pthread_kill(entered->thread, stop_signal());
    }
    if (is_running) std::this_thread::sleep_for(std::chrono::microseconds(200));
  }
  return !is_running;
}

void stop_all() {
  Registry& all = registry();
  const std::lock_guard lock(all.mutex);
  stop_threads(all.threads);
}

void let_signal_in() {
  sigset_t set;
  ::sigemptyset(&set);
  ::sigaddset(&set, stop_signal());
  ::pthread_sigmask(SIG_UNBLOCK, &set, nullptr);
}

}  // namespace

LibraryThread::LibraryThread(const void* function, const void* task) {
  auto entered = std::make_unique<Entered>(code_around(function), task);
  let_signal_in();
  watch_stack(stop_overflown);
  Registry& all = registry();
  const std::lock_guard lock(all.mutex);
  // Registered behind the library's own handlers, and so called before them.
  if (std::find(all.libraries.begin(), all.libraries.end(), entered->code.begin) ==
      all.libraries.end()) {
    all.libraries.push_back(entered->code.begin);
    std::atexit(stop_all);
  }
  all.threads.push_back(entered.get());
  mine = entered.release();
}

LibraryThread::~LibraryThread() {
  Entered* const entered = mine;
  if (entered == nullptr) return;
  Registry& all = registry();
  const std::lock_guard lock(all.mutex);
  std::erase(all.threads, entered);
  mine = nullptr;
  delete entered;
}

std::optional<std::chrono::nanoseconds> LibraryThread::processor_time(const void* task) {
  Registry& all = registry();
  const std::lock_guard lock(all.mutex);  // keeps the thread where it is
  for (const Entered* entered : all.threads) {
    if (entered->task != task) continue;
    clockid_t clock{};
    struct timespec used {};
    if (::pthread_getcpuclockid(entered->thread, &clock) != 0) return std::nullopt;
    if (::clock_gettime(clock, &used) != 0) return std::nullopt;
    return std::chrono::seconds(used.tv_sec) + std::chrono::nanoseconds(used.tv_nsec);
  }
  return std::nullopt;
}

bool LibraryThread::has_overflown(const void* task) {
  Registry& all = registry();
  const std::lock_guard lock(all.mutex);
  return std::any_of(all.threads.begin(), all.threads.end(), [&](const Entered* entered) {
    return entered->task == task && entered->is_overflown;
  });
}

bool LibraryThread::stop(const void* task) {
  Registry& all = registry();
  const std::lock_guard lock(all.mutex);
  std::vector<Entered*> threads;
  std::copy_if(all.threads.begin(), all.threads.end(), std::back_inserter(threads),
               [&](const Entered* entered) { return entered->task == task; });
  return !threads.empty() && stop_threads(threads);
}

}  // namespace kernwright
