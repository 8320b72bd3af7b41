// Who is free, in the order of use.
#include "worker/worker_pool.h"

#include <algorithm>
#include <condition_variable>
#include <mutex>
#include <utility>

namespace kernwright {

struct WorkerPool::State {
  explicit State(unsigned count) : size(count) {}
  const unsigned size;
  mutable std::mutex mutex;
  std::condition_variable given_back;
  std::vector<std::unique_ptr<Worker>> free;  ///< used last at the back
};

WorkerPool::WorkerPool(unsigned size, WorkerOptions options)
    : state_(std::make_unique<State>(size)) {
  if (size == 0) throw InvalidArgument("a pool of 0 workers does nothing: give it at least one");
  for (unsigned i = 0; i < size; ++i) state_->free.push_back(std::make_unique<Worker>(options));
}

WorkerPool::~WorkerPool() = default;

WorkerPool::Lease::Lease(WorkerPool& pool, std::unique_ptr<Worker> worker)
    : pool_(&pool), worker_(std::move(worker)) {}

WorkerPool::Lease::~Lease() {
  if (worker_ == nullptr) return;
  const std::lock_guard lock(pool_->state_->mutex);
  pool_->state_->free.push_back(std::move(worker_));  // there is room: it was in there before
  pool_->state_->given_back.notify_one();
}

WorkerPool::Lease WorkerPool::lease(const WaitLimits& limits) {
  std::unique_lock lock(state_->mutex);
  while (state_->free.empty()) {
    if (state_->given_back.wait_for(lock, kWaitSlice) == std::cv_status::no_timeout) continue;
    lock.unlock();
    check_wait(limits, "a free worker");
    lock.lock();
  }
  std::unique_ptr<Worker> worker = std::move(state_->free.back());
  state_->free.pop_back();
  return {*this, std::move(worker)};
}

void WorkerPool::warm_up(unsigned count) {
  std::vector<Lease> leases;
  for (unsigned i = 0; i < std::min(count, state_->size); ++i) {
    leases.push_back(lease());
    leases.back()->start();
  }
}

unsigned WorkerPool::size() const noexcept { return state_->size; }

int WorkerPool::starts() const {
  const std::lock_guard lock(state_->mutex);
  int count = 0;
  for (const auto& worker : state_->free) count += worker->starts();
  return count;
}

}  // namespace kernwright
