// Remembers handlers when the first compile begins and puts them back when they were replaced.
#include "jit/compile/signal_guard.h"

#include <signal.h>

#include <array>
#include <atomic>
#include <chrono>
#include <mutex>

#include "base/per_process.h"
#include "jit/compile/library_code.h"

namespace kernwright {
namespace {

constexpr std::array kSignals{SIGINT, SIGTERM, SIGHUP};

struct Saved {
  struct sigaction action {};
  bool is_ours = false;  ///< not already the library's, when it was saved
};

struct State {
  std::mutex mutex;
  int guards = 0;
  CodeRange library;
  std::array<Saved, kSignals.size()> saved;
};

State& state() { return per_process<State>(); }

std::atomic<int> active = 0;

/// Compilers call back every few microseconds; looking at the handlers takes system calls.
constexpr std::chrono::milliseconds kInterval{1};
std::atomic<std::chrono::steady_clock::rep> next_look = 0;

bool is_inside(const CodeRange& library, const struct sigaction& action) {
  return library.contains(reinterpret_cast<std::uintptr_t>(action.sa_handler));
}

bool is_same_handler(const struct sigaction& a, const struct sigaction& b) {
  return a.sa_handler == b.sa_handler;
}

/// The caller holds the mutex.
void put_back(State& all, bool with_flags) noexcept {
  for (std::size_t i = 0; i < kSignals.size(); ++i) {
    const Saved& saved = all.saved[i];
    struct sigaction now {};
    if (!saved.is_ours || ::sigaction(kSignals[i], nullptr, &now) != 0) continue;
    const bool lost_flags =
        with_flags && is_same_handler(now, saved.action) && now.sa_flags != saved.action.sa_flags;
    if (is_inside(all.library, now) || lost_flags) {
      ::sigaction(kSignals[i], &saved.action, nullptr);
    }
  }
}

}  // namespace

SignalGuard::SignalGuard(const void* function) {
  State& all = state();
  const std::lock_guard lock(all.mutex);
  if (all.guards++ == 0) {
    all.library = code_around(function);
    for (std::size_t i = 0; i < kSignals.size(); ++i) {
      Saved& saved = all.saved[i];
      saved.is_ours = ::sigaction(kSignals[i], nullptr, &saved.action) == 0 &&
                      !is_inside(all.library, saved.action);
    }
  }
  active.store(all.guards);
  next_look.store(0);
}

SignalGuard::~SignalGuard() {
  State& all = state();
  const std::lock_guard lock(all.mutex);
  active.store(--all.guards);
  put_back(all, all.guards == 0);
}

void SignalGuard::keep() noexcept {
  if (active.load(std::memory_order_relaxed) <= 0) return;
  const auto now = std::chrono::steady_clock::now().time_since_epoch();
  if (now.count() < next_look.load(std::memory_order_relaxed)) return;
  next_look.store((now + kInterval).count(), std::memory_order_relaxed);
  State& all = state();
  const std::unique_lock lock(all.mutex, std::try_to_lock);
  if (lock.owns_lock()) put_back(all, false);
}

}  // namespace kernwright
