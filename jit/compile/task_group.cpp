// A queue of tasks, threads that take from it, and a caller that helps.
#include "jit/compile/task_group.h"

#include <algorithm>
#include <condition_variable>
#include <deque>
#include <exception>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

#include "base/errors.h"
#include "jit/compile/compile_wait.h"

namespace kernwright {
namespace {

/// An interrupt of the calling thread concerns all tasks, whichever it has ended.
void rethrow_interrupt(const std::exception_ptr& error) {
  try {
    std::rethrow_exception(error);
  } catch (const Interrupted&) {
    throw;
  } catch (...) {
    // That is for the wait for this task.
  }
}

}  // namespace

struct TaskGroup::State {
  struct Entry {
    Task task = {};
    bool is_done = false;
    std::exception_ptr error = {};
  };

  State() : callers(current_wait_limits()), limits(callers) {
    limits.stop = std::make_shared<std::atomic<bool>>(false);
  }

  bool has_next() const { return next < entries.size(); }

  /// Runs the first task that nobody has begun. The caller holds the lock, but not meanwhile.
  void run_next(std::unique_lock<std::mutex>& lock) {
    Entry& entry = entries[next++];  // stays where it is
    lock.unlock();
    std::exception_ptr error;
    try {
      std::exchange(entry.task, nullptr)();
    } catch (...) {
      error = std::current_exception();
    }
    lock.lock();
    entry.error = std::move(error);
    entry.is_done = true;
    ++done;
    changed.notify_all();
  }

  /// The life of a thread.
  void serve() {
    const WaitScope scope(limits);
    std::unique_lock lock(mutex);
    while (true) {
      changed.wait(lock, [&] { return is_closed || has_next(); });
      if (is_closed) return;
      run_next(lock);
    }
  }

  const WaitLimits callers;
  WaitLimits limits;  ///< of the threads: those of the caller, with a stop flag of the group
  std::mutex mutex;
  std::condition_variable changed;
  std::deque<Entry> entries;
  std::size_t next = 0;  ///< the first that nobody has begun
  std::size_t done = 0;
  bool is_closed = false;
  std::vector<std::thread> threads;  ///< for the caller alone
};

TaskGroup::TaskGroup() : state_(std::make_unique<State>()) {}

TaskGroup::~TaskGroup() {
  state_->limits.stop->store(true);
  {
    const std::lock_guard lock(state_->mutex);
    state_->is_closed = true;
  }
  state_->changed.notify_all();
  for (std::thread& thread : state_->threads) thread.join();
}

std::size_t TaskGroup::add(Task task) {
  State& state = *state_;
  std::size_t number = 0, open = 0;
  {
    const std::lock_guard lock(state.mutex);
    number = state.entries.size();
    state.entries.push_back({.task = std::move(task)});
    open = state.entries.size() - state.done;
  }
  state.changed.notify_all();
  const std::size_t most = std::max(1u, std::thread::hardware_concurrency()) - 1;  // and the caller
  if (state.threads.size() >= std::min(open, most)) return number;
  try {
    state.threads.emplace_back([&state] { state.serve(); });
  } catch (const std::exception&) {
    // The threads there are, or wait(), do it.
  }
  return number;
}

void TaskGroup::wait(std::size_t number) {
  State& state = *state_;
  std::unique_lock lock(state.mutex);
  const State::Entry& entry = state.entries.at(number);
  // A deadline is for the tasks, whose messages name what took too long.
  WaitLimits limits;
  limits.stop = state.callers.stop;
  while (!entry.is_done) {
    if (state.has_next()) {
      const State::Entry& helped = state.entries[state.next];
      state.run_next(lock);
      if (helped.error) rethrow_interrupt(helped.error);
      continue;
    }
    if (state.changed.wait_for(lock, kWaitSlice, [&] { return entry.is_done; })) break;
    lock.unlock();
    check_wait(limits, "waiting for compiles in other threads");
    lock.lock();
  }
  if (entry.error) std::rethrow_exception(entry.error);
}

}  // namespace kernwright
