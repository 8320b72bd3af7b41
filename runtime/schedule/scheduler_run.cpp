// From the beginning of a task to its end, and the threads of a scheduler.
#include "base/errors.h"
#include "base/format.h"
#include "base/log.h"
#include "core/device.h"
#include "core/lifecycle.h"
#include "schedule/scheduler_core.h"
#include "schedule/task_here.h"

#include <sys/prctl.h>

#include <algorithm>
#include <system_error>
#include <thread>
#include <utility>

namespace kernwright::schedule {
namespace {

std::string failure_text(const std::exception_ptr& failure) {
  try {
    std::rethrow_exception(failure);
  } catch (const std::exception& error) {
    return error.what();
  } catch (...) {
    return "an exception of an unknown type";
  }
}

/// By default the system makes each pause of a thread 50 us longer.
void sharpen_pauses() noexcept { ::prctl(PR_SET_TIMERSLACK, 1000UL); }

thread_local const SchedulerCore* own_core = nullptr;

bool is_cancellation(const std::exception_ptr& failure) {
  try {
    std::rethrow_exception(failure);
  } catch (const TaskCancelled&) {
    return true;
  } catch (...) {
    return false;
  }
}

}  // namespace

void SchedulerCore::run(const TaskPointer& task) {
  TaskHere here(shared_from_this(), task);
  std::exception_ptr failure = here.failure();
  std::shared_ptr<Work> work = std::move(task->work_);
  if (failure == nullptr) {
    try {
      work->run(here.stream());
    } catch (...) {
      failure = std::current_exception();
    }
  }
  work.reset();
  here.end(std::move(failure));
}

/// All work of the task is queued: from here on its end is an event of the device.
void SchedulerCore::issue(const TaskPointer& task, std::exception_ptr failure) {
  Lane& lane = lanes_[task->lane_];
  std::optional<Event> end;
  try {
    end = take_event();
    end->record(lane.stream);
  } catch (...) {
    if (failure == nullptr) failure = std::current_exception();
    end.reset();
    end_after_failure(task);
  }
  Callbacks callbacks;
  {
    const Lock lock(mutex_);
    --issuing_;
    task->is_issued_ = true;
    task->failure_ = failure;
    task->end_ = end;
    release_successors(task, failure != nullptr, callbacks);
    if (end) {
      lane.issued.push_back(task);
      if (!is_watching_) issued_.notify_one();
    } else {
      const bool cancelled = is_cancellation(failure);
      finish(task, cancelled ? TaskState::cancelled : TaskState::failed, failure_text(failure),
             failure, callbacks);
    }
    changed_.notify_all();
  }
  for (const auto& call : callbacks) call();
  if (!options.background) reap();
}

/// Without an event for its end: waits, so that nothing is given back under running work.
void SchedulerCore::end_after_failure(const TaskPointer& task) noexcept {
  try {
    if (!device.lost()) lanes_[task->lane_].stream.synchronize();
  } catch (const std::exception& error) {
    log_release_failure(task->label().c_str(), error.what());
  }
}

/// Those behind `task` may go on, or fail with it.
void SchedulerCore::release_successors(const TaskPointer& task, bool failed, Callbacks& callbacks) {
  for (const std::weak_ptr<Task>& link : std::exchange(task->successors_, {})) {
    const TaskPointer next = link.lock();
    if (next == nullptr || next->is_over()) continue;
    if (failed) {
      finish(next, TaskState::failed,
             format("its predecessor {} failed or was cancelled", task->label()), task->failure_,
             callbacks);
    } else if (--next->predecessors_ == 0) {
      waiting_.add(next);
      if (options.background) start_threads();
    }
  }
}

/// The end of a task, whatever it is: all that it holds is given back here and only here.
void SchedulerCore::finish(const TaskPointer& task, TaskState state, std::string reason,
                           std::exception_ptr failure, Callbacks& callbacks) {
  const bool was_admitted = task->change_count_ >= 3;
  waiting_.remove(task);
  note(*task, state, std::move(reason));
  task->failure_ = std::move(failure);
  task->reservation_ = Reservation();
  if (was_admitted) {
    Lane& lane = lanes_[task->lane_];
    --lane.load;
    --running_[ordinal(lane.qos)];
    if (lane.qos != Qos::best_effort) pacer_.note_urgent(clock->now());
  }
  leave_tenant(*task);
  ClassStats& counts = classes_[ordinal(task->spec_.qos)];
  if (state == TaskState::done) ++counts.done;
  if (state == TaskState::failed) ++counts.failed;
  if (state == TaskState::cancelled) ++counts.cancelled;
  counts.device += task->device_;
  for (std::optional<Event>* event : {&task->ready_, &task->begin_, &task->end_}) {
    if (*event && !device.lost()) events_.push_back(std::move(**event));
    event->reset();
  }
  task->peak_ = task->memory_ != nullptr ? task->memory_->peak() : task->peak_;
  task->memory_.reset();
  live_.erase(task->id_);
  if (options.kept != 0) ended_.push_back(task);
  if (ended_.size() > options.kept) ended_.pop_front();
  if (task->content_ != nullptr) {
    callbacks.push_back([content = std::move(task->content_)] { content->leave(); });
  }
  for (auto& call : std::exchange(task->at_end_, {})) callbacks.push_back(std::move(call));
  if (task->work_ != nullptr || !task->after_.empty()) {  // let go of with no lock held
    callbacks.push_back([kept = std::move(task->work_), links = std::move(task->after_)] {});
  }
  release_successors(task, state != TaskState::done, callbacks);
  changed_.notify_all();
  if (is_closed_) issued_.notify_all();
}

/// Device time of tasks whose work is done: of each from its beginning, or from the end of the one
/// before where that is later. So no time counts twice.
void SchedulerCore::charge(Ended& ended) {
  struct End {
    float end, whole;  ///< ms after the last end; since the task's beginning
    Task* task;
    bool operator<(const End& other) const noexcept { return end < other.end; }
  };
  std::vector<End> ends;
  for (auto& [task, failure] : ended) {
    if (failure != nullptr || !task->begin_ || task->is_paced_) continue;
    try {
      if (!last_end_) last_end_ = task->begin_;
      ends.push_back(
          {task->end_->elapsed_ms(*last_end_), task->end_->elapsed_ms(*task->begin_), task.get()});
    } catch (...) {
      failure = std::current_exception();
    }
  }
  std::sort(ends.begin(), ends.end());
  float before = 0;
  for (const auto& [end, whole, task] : ends) {
    task->device_ = from_seconds(std::max(std::min(whole, end - before), 0.0F) / 1e3);
    if (end > before) last_end_ = task->end_;
    before = std::max(before, end);
  }
}

/// Asks the driver whether the work of the task is done. Returns its error, if it has one.
std::exception_ptr SchedulerCore::ask(const TaskPointer& task, bool& is_done) noexcept {
  try {
    is_done = task->end_->done();
    return nullptr;
  } catch (...) {
    const std::exception_ptr failure = std::current_exception();
    end_after_failure(task);
    is_done = true;
    return failure;
  }
}

bool SchedulerCore::reap() {
  for (bool any = false;; any = true) {
    Callbacks callbacks;
    {
      const std::unique_lock reaping(reaping_, std::try_to_lock);
      if (!reaping) return any;
      std::vector<TaskPointer> heads;
      {
        const Lock lock(mutex_);
        for (const Lane& lane : lanes_) {
          if (!lane.issued.empty()) heads.push_back(lane.issued.front());
        }
      }
      Ended ended;
      for (const TaskPointer& task : heads) {
        bool is_done = false;
        const std::exception_ptr failure = ask(task, is_done);
        if (is_done) ended.emplace_back(task, failure);
      }
      if (ended.empty()) return any;
      charge(ended);
      measure(true);
      const Lock lock(mutex_);
      for (const auto& [task, failure] : ended) {
        std::erase(lanes_[task->lane_].issued, task);
        end(task, failure, callbacks);
      }
    }
    for (const auto& call : callbacks) call();
  }
}

void SchedulerCore::end(const TaskPointer& task, const std::exception_ptr& found,
                        Callbacks& callbacks) {
  std::exception_ptr failure = task->failure_ != nullptr ? task->failure_ : found;
  if (!task->is_paced_ && task->device_ > Time(0))
    task->tenant_->charge(clock->now(), task->device_);
  // The last end stays recorded until another one replaces it.
  for (std::optional<Event>* event : {&task->begin_, &task->end_}) {
    if (*event && last_end_ && (*event)->handle() == last_end_->handle()) event->reset();
  }
  if (failure == nullptr) return finish(task, TaskState::done, {}, nullptr, callbacks);
  const bool cancelled = is_cancellation(failure);
  finish(task, cancelled ? TaskState::cancelled : TaskState::failed, failure_text(failure), failure,
         callbacks);
}

/// The thread that watches, and one for waiting tasks of each class whose threads are all at work:
/// a task may take its time, and others must not wait for its host.
void SchedulerCore::start_threads() {
  constexpr std::size_t kMost = 8;  ///< of a class
  const auto start = [this](auto serve) {
    std::thread([self = shared_from_this(), serve] {
      own_core = self.get();
      serve(*self);
    }).detach();
    ++threads_;
  };
  if (!has_watcher_) start([](SchedulerCore& self) { self.watch(); });
  has_watcher_ = true;
  for (const Qos qos : kAllClasses) {
    std::size_t& servers = servers_[ordinal(qos)];
    const std::size_t most = std::min(options.most_running[ordinal(qos)], kMost);
    if (servers != 0 && (waiting_.count(qos) <= idle_[ordinal(qos)] || servers >= most)) continue;
    try {
      start([qos](SchedulerCore& self) { self.serve_class(qos); });
      ++servers;
    } catch (const std::system_error&) {
      if (servers == 0) throw;  // with fewer threads tasks only begin later
    }
  }
}

bool SchedulerCore::is_own_thread() const noexcept { return own_core == this; }

/// A thread that begins tasks of one class.
void SchedulerCore::serve_class(Qos qos) {
  constexpr std::chrono::milliseconds kPause(1);
  sharpen_pauses();
  Lock lock(mutex_);
  while (!is_closed_ && may_call_driver()) {
    TaskPointer task;
    try {
      task = next(lock, qos);
    } catch (const std::exception& error) {  // of a foreign policy
      lock.unlock();
      log(LogLevel::error, "the policy {} failed: {}", policy->name(), error.what());
      lock.lock();
      capped_ = true;
    }
    if (task == nullptr) {
      ++idle_[ordinal(qos)];
      if (capped_) {
        changed_.wait_for(lock, kPause);
      } else {
        changed_.wait(lock);
      }
      --idle_[ordinal(qos)];
      continue;
    }
    start_threads();  // for tasks that wait behind this one
    lock.unlock();
    run(task);
    task.reset();
    lock.lock();
  }
  --threads_;
  changed_.notify_all();
}

/// The thread that sees the end of tasks. It asks often while work is young, seldom later.
void SchedulerCore::watch() {
  using std::chrono::microseconds;
  sharpen_pauses();
  const auto has_issued = [&] {
    return std::any_of(lanes_.begin(), lanes_.end(),
                       [](const Lane& lane) { return !lane.issued.empty(); });
  };
  microseconds pause{0};
  Lock lock(mutex_);
  while (may_call_driver()) {
    if (!has_issued()) {
      if (is_closed_ && live_.empty()) break;
      is_watching_ = false;
      issued_.wait(lock);
      is_watching_ = true;
      pause = microseconds(0);
      continue;
    }
    is_watching_ = true;
    lock.unlock();
    if (reap()) {
      pause = microseconds(0);
    } else {
      if (pause > microseconds(0)) {
        std::this_thread::sleep_for(pause);
      } else {
        std::this_thread::yield();
      }
      pause = std::min(pause + microseconds(1), microseconds(20));
    }
    lock.lock();
  }
  --threads_;
  changed_.notify_all();
}

void SchedulerCore::shut() {
  if (!may_call_driver()) return;
  Callbacks callbacks;
  {
    const Lock lock(mutex_);
    is_closed_ = true;
    const auto tasks = live_;
    for (const auto& [id, task] : tasks) {
      if (task->state() != TaskState::queued) continue;
      cancel_queued(task, "the scheduler was closed", callbacks);
    }
    changed_.notify_all();
    issued_.notify_all();
  }
  for (const auto& call : callbacks) call();
}

}  // namespace kernwright::schedule
