// The ends of tasks: which ones the driver says are done, and the thread that watches for them.
#include "base/log.h"
#include "core/device.h"
#include "core/lifecycle.h"
#include "schedule/precise_sleep.h"
#include "schedule/scheduler_core.h"

#include <algorithm>
#include <thread>

namespace kernwright::schedule {
namespace {

constexpr std::size_t kFewTasks = 2;
constexpr std::chrono::microseconds kFresh(900);  ///< the age of a look that spares another one

/// The part of a sum of times that fits into so much time.
float fitting_part(float sum, float time) { return sum > time ? time / sum : 1; }

/// The tasks of a stream that ended, in ms after the last end that was known before.
struct Busy {
  float begin = 0, end = 0;     ///< of all of them
  float sum = 0, latest = 0;    ///< times of all; of the last one
  const Event* last = nullptr;  ///< the end of the last one
  int tasks = 0;

  float time() const { return std::max(end - std::max(begin, 0.0F), 0.0F); }
  float part() const { return fitting_part(sum, time()); }
};

/// Milliseconds in which any of the streams was at work.
float busy_time(std::vector<Busy> streams) {
  std::sort(streams.begin(), streams.end(),
            [](const Busy& left, const Busy& right) { return left.begin < right.begin; });
  float sum = 0, before = 0;
  for (const Busy& stream : streams) {
    sum += std::max(stream.end - std::max(stream.begin, before), 0.0F);
    before = std::max(before, stream.end);
  }
  return sum;
}

/// Without memory for the names of those that ended they are asked again later.
bool reap_safely(SchedulerCore& core) noexcept {
  try {
    return core.reap();
  } catch (const std::exception& error) {
    log_release_failure("the thread that watches tasks", error.what());
    return false;
  }
}

}  // namespace

/// Device time of tasks whose work is done: of each from its beginning, or from the end of the one
/// in front of it on its stream. Time up to the last known end was charged before. So the tasks of
/// a stream share the time of the stream since then, and streams share the time in which any was at
/// work. A pause between two tasks of a stream counts as work of the stream. A question to the
/// driver takes microseconds: one is asked for each task, and two for each stream.
void SchedulerCore::charge(Ended& ended) {
  std::vector<Busy> streams(lanes_.size());
  std::vector<std::pair<Task*, float>> times;  // ms
  for (auto& [task, failure] : ended) {
    if (failure != nullptr || task->is_paced_) continue;
    if (!last_end_) last_end_ = task->begin_;
    if (!last_end_) continue;
    Busy& stream = streams[task->lane_];
    const bool is_first = stream.last == nullptr;
    const Event& end = *task->end_;
    try {
      const float place = is_first ? end.elapsed_ms(*last_end_) : 0;
      // Without a beginning of its own it was queued behind another one.
      const float time = task->begin_ ? end.elapsed_ms(*task->begin_)
                         : is_first   ? std::max(place, 0.0F)
                                      : end.elapsed_ms(*stream.last);
      times.emplace_back(task.get(), time);
      if (is_first) stream = {.begin = place - time, .end = place};
      stream.last = &end;
      ++stream.tasks;
      stream.sum += stream.latest = time;
    } catch (...) {
      failure = std::current_exception();
    }
  }
  const Event* latest = nullptr;
  float latest_end = 0, sum = 0;
  for (Busy& stream : streams) {
    try {
      if (stream.tasks > 1) stream.end = stream.last->elapsed_ms(*last_end_);
    } catch (const std::exception&) {  // the next call of the driver tells
    }
    // Another task may have begun and ended in the work of the last one.
    stream.begin = std::min(stream.begin, stream.end - stream.latest);
    sum += stream.sum * stream.part();
    if (stream.end <= latest_end) continue;
    latest_end = stream.end;
    latest = stream.last;
  }
  if (latest != nullptr) last_end_ = *latest;
  const float part = fitting_part(sum, busy_time(streams));
  for (const auto& [task, time] : times) {
    task->device_ = from_seconds(time * streams[task->lane_].part() * part / 1e3);
  }
}

/// At most so many of the oldest tasks of a lane.
std::vector<TaskPointer> SchedulerReport::oldest_tasks(const Lane& lane, std::size_t most) const {
  const Lock lock(mutex_);
  const auto count = static_cast<std::ptrdiff_t>(std::min(lane.issued.size(), most));
  return {lane.issued.begin(), lane.issued.begin() + count};
}

/// The tasks of a lane whose work is done. Their ends are events of one stream, which happen in the
/// order of the list: few of them are asked. A failing answer fails the oldest task alone.
void SchedulerCore::collect(const Lane& lane, Ended& ended) {
  constexpr std::size_t kMost = 1024;  // others wait for the ends, and more tasks may come
  std::vector<TaskPointer> tasks = oldest_tasks(lane, 1);
  if (tasks.empty()) return;
  std::exception_ptr failure;
  try {
    if (!tasks.front()->end_->done()) return;
  } catch (...) {
    failure = std::current_exception();
    end_after_failure(tasks.front());
  }
  ended.emplace_back(tasks.front(), failure);
  if (failure != nullptr) return;
  const auto is_over = [](const TaskPointer& task) {
    try {
      return task->end_->done();
    } catch (const std::exception&) {
      return false;  // it is asked again as the oldest one
    }
  };
  tasks = oldest_tasks(lane, kMost);
  const auto open = std::partition_point(tasks.begin() + 1, tasks.end(), is_over);
  for (auto each = tasks.begin() + 1; each != open; ++each) {
    ended.emplace_back(std::move(*each), nullptr);
  }
}

bool SchedulerCore::reap(bool waits) {
  Over over;
  {
    std::unique_lock reaping(reaping_, std::defer_lock);
    if (waits) {
      reaping.lock();
    } else if (!reaping.try_lock()) {
      return false;
    }
    const ReleaseGuard guard(device);  // one context for all questions
    looked_ = std::chrono::steady_clock::now();
    Ended ended;
    for (const Lane& lane : lanes_) collect(lane, ended);
    if (ended.empty()) return false;
    charge(ended);
    measure(true);
    {
      const Lock lock(mutex_);
      for (const auto& [task, failure] : ended) {
        task->is_reaped_ = true;
        end(task, failure, over);
      }
      for (Lane& lane : lanes_) {
        std::erase_if(lane.issued, [](const TaskPointer& task) { return task->is_reaped_; });
        lane.keeps_up = lane.issued.size() <= kFewTasks;
      }
    }
    over.leave_content();  // before another thread finds that no task is left to end
  }
  settle(over);
  return true;
}

/// A thread of the user may hold a lock that a call at the end of a task takes, and be in the work
/// of a task with limits of its own: the watching thread calls.
void SchedulerCore::settle(Over& over) noexcept {
  over.leave_content();
  if (options.background && over.has_calls() && (runs_here() || !serves_here())) {
    const Lock lock(mutex_);
    if (has_watcher_) {
      left_.append(over);
      issued_.notify_one();
      return;
    }
  }
  over.settle(*this);
}

void SchedulerCore::settle_left(Lock& lock) noexcept {
  Over over;
  over.append(left_);
  lock.unlock();
  over.settle(*this);
  lock.lock();
}

bool SchedulerReport::looked_lately() const noexcept {
  return std::chrono::steady_clock::now() - looked_.load() < kFresh;
}

bool SchedulerReport::has_issued() const noexcept {
  return std::any_of(lanes_.begin(), lanes_.end(),
                     [](const Lane& lane) { return !lane.issued.empty(); });
}

/// The thread that sees the end of tasks. While somebody waits for one it asks often, and less so
/// the longer the work takes. Else it looks in from time to time, and not while a thread that
/// submits does: both would compete for the driver and the lock.
void SchedulerCore::watch() {
  using std::chrono::microseconds;
  constexpr microseconds kShortRest(500), kLongRest(1000);
  constexpr int kMostRests = 50;  ///< without work
  microseconds pause{0}, rest = kShortRest;
  int rests = 0;
  const PreciseSleep precise;
  Lock lock(mutex_);
  while (may_call_driver()) {
    if (!left_.is_empty()) {
      watch_ = Watch::awake;
      settle_left(lock);
      continue;
    }
    const bool has_work = has_issued();
    if (!has_work && is_closed_ && live_.empty()) break;
    if (has_work) rests = 0;
    if (!has_work && (is_eager() || ++rests > kMostRests)) {
      watch_ = Watch::asleep;
      issued_.wait(lock);
    } else if (!is_eager()) {
      watch_ = Watch::resting;
      issued_.wait_for(lock, has_work ? rest : kLongRest);
    }
    watch_ = Watch::awake;
    if (!has_issued() || (!is_eager() && looked_lately())) {
      pause = microseconds(0);
      continue;
    }
    lock.unlock();
    if (reap_safely(*this)) {
      pause = microseconds(0);
      rest = kShortRest;
    } else {
      if (pause > microseconds(0)) {
        std::this_thread::sleep_for(pause);
      } else {
        std::this_thread::yield();
      }
      pause = std::min(pause + microseconds(1), microseconds(20));
      rest = std::min(2 * rest, kLongRest);
    }
    lock.lock();
  }
  has_watcher_ = false;
  if (!left_.is_empty()) settle_left(lock);
  --threads_;
  changed_.notify_all();
}

}  // namespace kernwright::schedule
