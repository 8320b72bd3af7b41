// A small pool of threads and a queue of events.
#include "tune/session/work_lanes.h"

#include "base/errors.h"
#include "base/format.h"
#include "jit/compile/compile_wait.h"

#include <exception>
#include <utility>

namespace kernwright {

void WorkEvents::push(std::uint64_t event) {
  const std::lock_guard held(mutex_);
  events_.push_back(event);
  changed_.notify_one();
}

std::vector<std::uint64_t> WorkEvents::wait() {
  std::unique_lock held(mutex_);
  changed_.wait_for(held, kWaitSlice, [&] { return !events_.empty(); });
  return std::exchange(events_, {});
}

WorkLanes::WorkLanes(unsigned count, WorkEvents& events) : events_(events) {
  threads_.reserve(count);
  try {
    for (unsigned lane = 0; lane < count; ++lane)
      threads_.emplace_back([this, lane] { serve(lane); });
  } catch (const std::exception& error) {  // fewer do as well, none does not
    if (threads_.empty())
      throw Error(format("the system starts no thread for a session: {}", error.what()));
  }
}

WorkLanes::~WorkLanes() {
  {
    const std::lock_guard held(mutex_);
    ends_ = true;
  }
  changed_.notify_all();
  for (std::thread& thread : threads_) thread.join();
}

unsigned WorkLanes::idle() const {
  const std::lock_guard held(mutex_);
  return static_cast<unsigned>(threads_.size()) - busy_;
}

void WorkLanes::start(std::uint64_t event, Job job) {
  {
    const std::lock_guard held(mutex_);
    ++busy_;
    jobs_.emplace_back(event, std::move(job));
  }
  changed_.notify_one();
}

void WorkLanes::serve(unsigned lane) {
  std::unique_lock held(mutex_);
  while (true) {
    changed_.wait(held, [&] { return ends_ || !jobs_.empty(); });
    if (jobs_.empty()) return;
    auto [event, job] = std::move(jobs_.front());
    jobs_.pop_front();
    held.unlock();
    job(lane);
    job = nullptr;
    held.lock();
    --busy_;
    held.unlock();
    events_.push(event);
    held.lock();
  }
}

}  // namespace kernwright
