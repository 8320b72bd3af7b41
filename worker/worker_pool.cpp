// The free workers, in the order of use.
#include "worker/worker_pool.h"

#include <algorithm>
#include <condition_variable>
#include <exception>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

namespace kernwright {

using Clock = std::chrono::steady_clock;

struct WorkerPool::State {
  struct Free {
    std::unique_ptr<Worker> worker;
    Clock::time_point since;  ///< when it was given back
  };

  State(unsigned count, std::chrono::milliseconds idle_limit) : size(count), idle(idle_limit) {}

  /// The life of the thread that ends idle processes: while there are any.
  static void watch(const std::shared_ptr<State>& state) {
    std::unique_lock lock(state->mutex);
    while (!state->is_closed) {
      const auto with_process = [](const Free& free) { return free.worker->has_process(); };
      const auto oldest = std::find_if(state->free.begin(), state->free.end(), with_process);
      if (oldest == state->free.end()) break;
      const auto end = oldest->since + state->idle;
      if (Clock::now() < end) {
        state->closed.wait_until(lock, end);
        continue;
      }
      Free taken = std::move(*oldest);
      state->free.erase(oldest);
      state->ending_starts = taken.worker->starts();
      lock.unlock();
      taken.worker->kill();  // which may take some milliseconds
      lock.lock();
      state->ending_starts = 0;
      state->free.insert(state->free.begin(), std::move(taken));
      state->given_back.notify_one();
    }
    state->is_watched = false;
  }

  const unsigned size;
  const std::chrono::milliseconds idle;
  mutable std::mutex mutex;
  std::condition_variable given_back, closed;
  std::vector<Free> free;  ///< used last at the back
  int ending_starts = 0;   ///< of the worker whose process is being ended: nobody uses it
  bool is_watched = false, is_closed = false;
};

WorkerPool::WorkerPool(unsigned size, WorkerOptions options, std::chrono::milliseconds idle)
    : state_(std::make_shared<State>(size, idle)) {
  if (size == 0) throw InvalidArgument("a pool of 0 workers does nothing: give it at least one");
  state_->free.reserve(size);
  for (unsigned i = 0; i < size; ++i) {
    state_->free.push_back({std::make_unique<Worker>(options), Clock::now()});
  }
}

WorkerPool::~WorkerPool() {
  const std::lock_guard lock(state_->mutex);
  state_->is_closed = true;
  state_->free.clear();
  state_->closed.notify_all();
}

WorkerPool::Lease::Lease(WorkerPool& pool, std::unique_ptr<Worker> worker)
    : pool_(&pool), worker_(std::move(worker)) {}

WorkerPool::Lease::~Lease() {
  if (worker_ != nullptr) pool_->give_back(std::move(worker_));
}

void WorkerPool::give_back(std::unique_ptr<Worker> worker) noexcept {
  const std::lock_guard lock(state_->mutex);
  state_->free.push_back({std::move(worker), Clock::now()});  // there is room: it was there before
  state_->given_back.notify_one();
  if (state_->is_watched || state_->idle.count() == 0) return;
  try {
    std::thread([state = state_] { State::watch(state); }).detach();
    state_->is_watched = true;
  } catch (const std::exception&) {
    // No thread can be started: the processes stay until the pool ends them.
  }
}

WorkerPool::Lease WorkerPool::lease(const WaitLimits& limits) {
  std::unique_lock lock(state_->mutex);
  while (state_->free.empty()) {
    if (state_->given_back.wait_for(lock, kWaitSlice) == std::cv_status::no_timeout) continue;
    lock.unlock();
    check_wait(limits, "waiting for a free worker");
    lock.lock();
  }
  std::unique_ptr<Worker> worker = std::move(state_->free.back().worker);
  state_->free.pop_back();
  return {*this, std::move(worker)};
}

unsigned WorkerPool::size() const noexcept { return state_->size; }

int WorkerPool::starts() const {
  const std::lock_guard lock(state_->mutex);
  int count = state_->ending_starts;
  for (const auto& free : state_->free) count += free.worker->starts();
  return count;
}

}  // namespace kernwright
