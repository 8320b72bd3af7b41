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
#include <new>
#include <thread>
#include <utility>

namespace kernwright::schedule {
namespace {

/// Empty where no memory is left for a text.
std::string failure_text(const std::exception_ptr& failure) noexcept {
  try {
    std::rethrow_exception(failure);
  } catch (const std::exception& error) {
    try {
      return error.what();
    } catch (...) {
      return {};
    }
  } catch (...) {
    return "unknown type";
  }
}

/// By default the system makes each pause of a thread 50 us longer.
void sharpen_pauses() noexcept { ::prctl(PR_SET_TIMERSLACK, 1000UL); }

thread_local const SchedulerCore* served_core = nullptr;
thread_local const SchedulerCore* calling_core = nullptr;  ///< whose functions at ends it calls

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
  std::unique_lock in_order(*lane.ending, std::defer_lock);
  try {
    end = take_event();
    in_order.lock();
    end->record(lane.stream);
  } catch (...) {
    if (failure == nullptr) failure = std::current_exception();
    end.reset();
    end_after_failure(task);
  }
  Over over;
  {
    const Lock lock(mutex_);
    --issuing_;
    task->is_issued_ = true;  // from here on cancel() is too late
    if (failure == nullptr && task->cancelled_.load(std::memory_order_relaxed)) {
      failure = cancelled_in_work(*task);
    }
    task->failure_ = failure;
    task->end_ = end;
    release_successors(*task, failure != nullptr, over);
    if (end) {
      lane.issued.push_back(task);
      if (watch_ == Watch::asleep || is_eager()) wake_watcher();
    } else {
      fail(task, failure, over);
    }
    tell_change();
  }
  if (in_order.owns_lock()) in_order.unlock();
  over.settle(*this);
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

void SchedulerCore::Over::add(const TaskPointer& task) noexcept {
  (last_ == nullptr ? first_ : last_->next_over_) = task;
  last_ = task.get();
}

void SchedulerCore::Over::settle(SchedulerCore& core) noexcept {
  last_ = nullptr;
  const SchedulerCore* const outer = std::exchange(calling_core, &core);
  for (TaskPointer task = std::move(first_); task != nullptr; task = std::move(task->next_over_)) {
    if (const auto content = std::move(task->content_)) content->leave();
    const std::vector<std::function<void()>> calls = std::exchange(task->at_end_, {});
    for (const auto& call : calls) call();
    if (!calls.empty()) {
      const Lock lock(core.mutex_);
      core.callbacks_ -= calls.size();
      if (core.callbacks_ == 0) core.changed_.notify_all();
    }
    const auto work = std::move(task->work_);
    const auto links = std::move(task->after_);
  }
  calling_core = outer;
}

const SchedulerCore* calling_here() noexcept { return calling_core; }

void SchedulerCore::Over::leave_content() noexcept {
  for (Task* task = first_.get(); task != nullptr; task = task->next_over_.get()) {
    if (const auto content = std::move(task->content_)) content->leave();
  }
}

bool SchedulerCore::Over::has_calls() const noexcept {
  const Task* task = first_.get();
  while (task != nullptr && task->at_end_.empty()) task = task->next_over_.get();
  return task != nullptr;
}

void SchedulerCore::Over::append(Over& other) noexcept {
  if (other.first_ == nullptr) return;
  (last_ == nullptr ? first_ : last_->next_over_) = std::move(other.first_);
  last_ = std::exchange(other.last_, nullptr);
}

/// Successors of `task` may go on, or fail with it, and then the successors of successors: in a
/// loop, because a chain of tasks may be longer than the stack is deep.
void SchedulerCore::release_successors(Task& task, bool failed, Over& over) noexcept {
  Over chain;
  release_next(task, failed, chain);
  for (Task* each = chain.first(); each != nullptr; each = each->next_over_.get()) {
    release_next(*each, true, chain);
  }
  over.append(chain);
}

/// The direct successors alone; failed ones are added to `over`.
void SchedulerCore::release_next(Task& task, bool failed, Over& over) noexcept {
  for (const std::weak_ptr<Task>& link : std::exchange(task.successors_, {})) {
    const TaskPointer next = link.lock();
    if (next == nullptr || next->is_over()) continue;
    std::exception_ptr failure = task.failure_;
    std::string reason;
    try {
      if (!failed) {
        if (--next->predecessors_ != 0) continue;
        waiting_.add(next);
        if (options.background) start_threads();
        continue;
      }
      reason = format("its predecessor {} failed or was cancelled", task.label());
    } catch (...) {  // no memory, or no thread
      if (!failed) failure = std::current_exception();
      if (!failed) reason = failure_text(failure);
    }
    conclude(next, TaskState::failed, std::move(reason), std::move(failure), over);
  }
}

/// Events are used again; without memory for that they end.
void SchedulerCore::keep_event(std::optional<Event>& event) noexcept {
  try {
    if (event && !device.lost()) {
      (event->timing() ? events_ : marks_).push_back(std::move(*event));
    }
  } catch (const std::bad_alloc&) {}
  event.reset();
}

/// The end of a task, whatever it is, and of successors that fail with it.
void SchedulerCore::finish(const TaskPointer& task, TaskState state, std::string reason,
                           std::exception_ptr failure, Over& over) noexcept {
  conclude(task, state, std::move(reason), std::move(failure), over);
  release_successors(*task, state != TaskState::done, over);
  tell_change();
  if (is_closed_) issued_.notify_all();
}

/// All that a task holds is given back here and only here.
void SchedulerCore::conclude(const TaskPointer& task, TaskState state, std::string reason,
                             std::exception_ptr failure, Over& over) noexcept {
  const bool was_admitted = task->change_count_ >= 3;
  const Time now = clock->now();
  waiting_.remove(task);
  note(*task, state, std::move(reason), now);
  task->failure_ = std::move(failure);
  task->reservation_ = Reservation();
  if (was_admitted) {
    Lane& lane = lanes_[task->lane_];
    --lane.load;
    --running_[ordinal(lane.qos)];
    if (lane.qos != Qos::best_effort) pacer_.note_urgent_end(now);
  }
  leave_tenant(*task);
  ClassStats& counts = classes_[ordinal(task->spec_.qos)];
  if (state == TaskState::done) ++counts.done;
  if (state == TaskState::failed) ++counts.failed;
  if (state == TaskState::cancelled) ++counts.cancelled;
  counts.device += task->device_;
  for (std::optional<Event>* event : {&task->ready_, &task->begin_, &task->end_}) {
    keep_event(*event);
  }
  task->peak_ = task->memory_ != nullptr ? task->memory_->peak() : task->peak_;
  task->memory_.reset();
  live_.erase(task->id_);
  over.add(task);
  try {
    if (options.kept != 0) ended_.push_back(task);
  } catch (const std::bad_alloc&) {  // tasks() does without it
  }
  if (ended_.size() > options.kept) ended_.pop_front();
}

void SchedulerCore::fail(const TaskPointer& task, const std::exception_ptr& failure,
                         Over& over) noexcept {
  finish(task, is_cancellation(failure) ? TaskState::cancelled : TaskState::failed,
         failure_text(failure), failure, over);
}

void SchedulerCore::end(const TaskPointer& task, const std::exception_ptr& found,
                        Over& over) noexcept {
  const std::exception_ptr failure = task->failure_ != nullptr ? task->failure_ : found;
  if (!task->is_paced_ && task->device_ > Time(0))
    task->tenant_->charge(clock->now(), task->device_);
  // The last end stays recorded until another one replaces it.
  for (std::optional<Event>* event : {&task->begin_, &task->end_}) {
    if (*event && last_end_ && (*event)->handle() == last_end_->handle()) event->reset();
  }
  if (failure == nullptr) return finish(task, TaskState::done, {}, nullptr, over);
  fail(task, failure, over);
}

/// The thread that watches, and one for waiting tasks of each class whose threads are all at work:
/// a task may take its time, and others must not wait for its host.
void SchedulerCore::start_threads() {
  constexpr std::size_t kMost = 8;  ///< of a class
  const auto start = [this](auto serve) {
    std::thread([self = shared_from_this(), serve] {
      served_core = self.get();
      sharpen_pauses();
      const ReleaseGuard guard(self->device);  // else each call of the driver sets the context
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
    } catch (const std::exception&) {
      if (servers == 0) throw;  // with fewer threads tasks only begin later
    }
  }
}

bool SchedulerCore::serves_here() const noexcept { return served_core == this; }

/// A thread that begins tasks of one class.
void SchedulerCore::serve_class(Qos qos) {
  constexpr std::chrono::milliseconds kPause(1), kRetry(100);
  Lock lock(mutex_);
  while (!is_closed_ && may_call_driver()) {
    TaskPointer task;
    const std::uint64_t before = changes_;
    try {
      task = next(lock, qos);
    } catch (const std::exception& error) {  // of a foreign policy, which is asked again
      const std::string text = *error.what() == '\0' ? "unknown" : error.what();
      const bool is_new = std::exchange(policy_failure_, text) != text;
      if (is_new) {  // one line, not one for each question
        lock.unlock();
        log(LogLevel::error, "the policy {} failed: {}", policy->name(), error.what());
        lock.lock();
      }
    }
    if (task == nullptr) {
      if (is_closed_ || changes_ != before) continue;  // while a foreign policy chose
      ++idle_[ordinal(qos)];
      if (capped_ || (!policy_failure_.empty() && waiting_.count() != 0)) {
        startable_[ordinal(qos)].wait_for(lock, capped_ ? kPause : kRetry);
      } else {
        startable_[ordinal(qos)].wait(lock);
      }
      --idle_[ordinal(qos)];
      continue;
    }
    try {
      start_threads();                       // for tasks that wait behind this one
    } catch (const std::exception& error) {  // without a thread they begin later
      log(LogLevel::warning, "a scheduler begins no further thread: {}", error.what());
    }
    tell_change(qos);
    lock.unlock();
    run(task);
    task.reset();
    lock.lock();
  }
  --threads_;
  changed_.notify_all();
}

void SchedulerCore::tell_change(std::optional<Qos> but) noexcept {
  ++changes_;
  if (eager_ != 0) changed_.notify_all();
  if (waiting_.count() == 0) return;
  for (const Qos qos : kAllClasses) {
    if (qos != but && idle_[ordinal(qos)] != 0) startable_[ordinal(qos)].notify_all();
  }
}

void SchedulerCore::note_room() {
  const Lock lock(mutex_);
  tell_change();
}

void SchedulerCore::wake_watcher() noexcept {
  if (watch_ != Watch::awake) issued_.notify_one();
}

void SchedulerCore::shut() {
  if (!may_call_driver()) return;
  Over over;
  {
    const Lock lock(mutex_);
    is_closed_ = true;
    for (auto next = live_.begin(); next != live_.end();) {
      const TaskPointer task = next->second;
      if (task->state() == TaskState::queued) cancel_queued(task, "the scheduler was closed", over);
      next = live_.upper_bound(task->id_);  // others may have ended with it
    }
    changed_.notify_all();
    for (std::condition_variable& each : startable_) each.notify_all();
    issued_.notify_all();
  }
  over.settle(*this);
}

}  // namespace kernwright::schedule
