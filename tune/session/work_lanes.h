// Threads for jobs of one other thread.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

namespace kernwright {

/// Jobs report here to the thread that started them. Thread-safe.
class WorkEvents {
 public:
  void push(std::uint64_t event);
  /// The events since the last call; waits for one, 20 ms at most.
  std::vector<std::uint64_t> wait();

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<std::uint64_t> events_;
};

/// `count` threads, or as many as the system starts, one job each at a time. start() and idle() are
/// for one thread.
class WorkLanes {
 public:
  using Job = std::function<void(unsigned lane)>;

  /// `events` must outlive it. Throws Error where no thread can be started.
  WorkLanes(unsigned count, WorkEvents& events);
  /// Waits for running jobs.
  ~WorkLanes();
  WorkLanes(const WorkLanes&) = delete;
  WorkLanes& operator=(const WorkLanes&) = delete;

  /// Lanes without a job. A job must not throw.
  unsigned idle() const;
  /// Only where a lane is idle. `event` is pushed when the job has ended and the lane is idle
  /// again.
  void start(std::uint64_t event, Job job);

 private:
  void serve(unsigned lane);

  WorkEvents& events_;
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::pair<std::uint64_t, Job>> jobs_;
  unsigned busy_ = 0;  ///< lanes with a job, begun or not
  bool ends_ = false;
  std::vector<std::thread> threads_;
};

}  // namespace kernwright
