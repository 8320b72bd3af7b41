// A queue of tasks and the threads that empty it.
#include "jit/compile/compile_pool.h"

#include <pthread.h>

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <deque>
#include <memory>
#include <mutex>
#include <system_error>
#include <utility>

#include "base/errors.h"
#include "base/format.h"
#include "base/per_process.h"

namespace kernwright {
namespace {

constexpr std::chrono::seconds kIdle{2};

/// Compilers descend with the nesting of the text: 8 MiB, the usual, are at an end after some 1000
/// brackets. Only what is used becomes memory.
constexpr std::size_t kStack = std::size_t{64} << 20;
/// Behind it, for frames larger than a page.
constexpr std::size_t kGuard = std::size_t{64} << 10;

void* run_function(void* given) {
  const std::unique_ptr<std::function<void()>> function(static_cast<std::function<void()>*>(given));
  (*function)();
  return nullptr;
}

/// Starts a thread that is never joined, with a stack of the usual size where there is no room for
/// a large one; an errno when it cannot.
int start_thread(std::function<void()> function) {
  auto owned = std::make_unique<std::function<void()>>(std::move(function));
  int error = 0;
  for (const bool is_large : {true, false}) {
    pthread_attr_t attributes;
    ::pthread_attr_init(&attributes);
    ::pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
    ::pthread_attr_setguardsize(&attributes, kGuard);
    if (is_large) ::pthread_attr_setstacksize(&attributes, kStack);
    pthread_t thread{};
    error = ::pthread_create(&thread, &attributes, run_function, owned.get());
    ::pthread_attr_destroy(&attributes);
    if (error != 0) continue;
    static_cast<void>(owned.release());  // the thread's now
    return 0;
  }
  return error;
}

}  // namespace

struct CompilePool::State {
  explicit State(unsigned count) : limit(std::max(1, static_cast<int>(count))) {}

  /// A worker's life. Holds the state alive.
  static void work(const std::shared_ptr<State>& state) {
    std::unique_lock lock(state->mutex);
    while (true) {
      ++state->idle;
      const bool has_task =
          state->changed.wait_for(lock, kIdle, [&] { return !state->tasks.empty(); });
      --state->idle;
      if (!has_task || state->running > state->limit) break;
      std::function<void()> task = std::move(state->tasks.front());
      state->tasks.pop_front();
      lock.unlock();
      task();
      task = nullptr;
      lock.lock();
    }
    --state->running;
    // A worker too many may have been the one that was woken.
    if (!state->tasks.empty()) state->changed.notify_one();
  }

  mutable std::mutex mutex;
  std::condition_variable changed;
  std::deque<std::function<void()>> tasks;
  int limit;
  int running = 0;
  std::size_t idle = 0;
};

CompilePool::CompilePool(unsigned workers) : state_(std::make_shared<State>(workers)) {}

void CompilePool::submit(std::function<void()> task) {
  const std::lock_guard lock(state_->mutex);
  state_->tasks.push_back(std::move(task));
  if (state_->idle >= state_->tasks.size() || state_->running >= state_->limit) {
    state_->changed.notify_one();
    return;
  }
  ++state_->running;
  if (const int error = start_thread([state = state_] { State::work(state); }); error != 0) {
    --state_->running;
    if (state_->running > 0) return;  // fewer workers do the same, later
    state_->tasks.pop_back();
    throw Error(format("no thread for compiling can be started: {}",
                       std::generic_category().message(error)));
  }
}

void CompilePool::add_worker() {
  {
    const std::lock_guard lock(state_->mutex);
    ++state_->limit;
    if (state_->tasks.empty()) return;
  }
  submit([] {});  // starts the worker that what is queued may need
}

void CompilePool::remove_worker() noexcept {
  const std::lock_guard lock(state_->mutex);
  --state_->limit;
}

unsigned CompilePool::workers() const noexcept {
  const std::lock_guard lock(state_->mutex);
  return static_cast<unsigned>(state_->limit);
}

CompilePool& CompilePool::process() {
  return per_process<CompilePool>(std::thread::hardware_concurrency());
}

}  // namespace kernwright
