// Remembers handlers when the first compile begins and puts them back when they were replaced.
#include "jit/compile/signal_guard.h"

#include <signal.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <mutex>
#include <vector>

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
  std::vector<CodeRange> libraries;  ///< copies of one compiler, for the most part
  std::array<Saved, kSignals.size()> saved;
};

State& state() { return per_process<State>(); }

std::atomic<int> active = 0;

/// Compilers call back every few microseconds; looking at the handlers takes system calls.
constexpr std::chrono::milliseconds kInterval{1};
std::atomic<std::chrono::steady_clock::rep> next_look = 0;

bool is_inside(const std::vector<CodeRange>& libraries, const struct sigaction& action) {
  const auto handler = reinterpret_cast<std::uintptr_t>(action.sa_handler);
  return std::any_of(libraries.begin(), libraries.end(),
                     [&](const CodeRange& library) { return library.contains(handler); });
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
    if (is_inside(all.libraries, now) || lost_flags) {
      ::sigaction(kSignals[i], &saved.action, nullptr);
    }
  }
}

}  // namespace

SignalGuard::SignalGuard(const void* function) {
  const CodeRange library = code_around(function);
  State& all = state();
  const std::lock_guard lock(all.mutex);
  if (!std::any_of(all.libraries.begin(), all.libraries.end(),
                   [&](const CodeRange& known) { return known.begin == library.begin; })) {
    all.libraries.push_back(library);
  }
  const bool is_first = all.guards++ == 0;
  for (std::size_t i = 0; i < kSignals.size(); ++i) {
    Saved& saved = all.saved[i];
    struct sigaction now {};
    const bool is_ours =
        ::sigaction(kSignals[i], nullptr, &now) == 0 && !is_inside(all.libraries, now);
    // The same handler with other flags is what the library makes of ours.
    if (is_first || (is_ours && !(saved.is_ours && is_same_handler(now, saved.action)))) {
      saved = {now, is_ours};
    }
  }
  active.store(all.guards);
  next_look.store(0);
}

SignalGuard::~SignalGuard() { forget(); }

void SignalGuard::forget() noexcept {
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
