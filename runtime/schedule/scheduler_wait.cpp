// Waiting for tasks, and cancelling them.
#include "base/errors.h"
#include "base/format.h"
#include "core/device.h"
#include "core/lifecycle.h"
#include "schedule/scheduler_core.h"
#include "schedule/task_here.h"

#include <algorithm>
#include <thread>

namespace kernwright::schedule {
namespace {

using std::chrono::steady_clock;
constexpr std::chrono::microseconds kPause(20);

steady_clock::time_point deadline_after(std::optional<std::chrono::nanoseconds> timeout) {
  constexpr auto kLongest = std::chrono::hours(24 * 365);
  return steady_clock::now() +
         std::min<std::chrono::nanoseconds>(timeout.value_or(kLongest), kLongest);
}

}  // namespace

bool SchedulerCore::wait(const TaskPointer& task, std::optional<std::chrono::nanoseconds> timeout,
                         WaitBy by) {
  require_member(*task, "wait() for");
  if (task->is_over()) return true;
  require_driver_allowed();  // a forked child has no thread that sees the end
  const auto until = deadline_after(timeout);
  if (runs_here()) return wait_inside(task, until);
  if (!options.background) return wait_by_steps(task.get(), until);
  if (serves_here()) return wait_in_callback([&] { return task->is_over(); }, until);
  if (by == WaitBy::looking && spin(*task, until)) return true;
  Lock lock(mutex_);
  return eagerly([&] { return changed_.wait_until(lock, until, [&] { return task->is_over(); }); });
}

/// In a function at the end of a task: its thread may be the one that sees the ends of others.
template <typename Predicate>
bool SchedulerCore::wait_in_callback(const Predicate& is_over, steady_clock::time_point until) {
  for (;;) {
    if (reap()) continue;
    Lock lock(mutex_);
    if (is_over()) return true;
    if (steady_clock::now() >= until) return false;
    eagerly([&] { return changed_.wait_for(lock, std::chrono::microseconds(200)); });
  }
}

/// A thread that sleeps takes longer to come back than small work takes, and the one that waits for
/// guaranteed work shall lose no time.
bool SchedulerCore::spin(const Task& task, steady_clock::time_point until) {
  constexpr std::chrono::microseconds kLongest(50), kGuaranteed(5000);
  const bool is_urgent = task.qos() == Qos::guaranteed;
  const auto end = std::min(until, steady_clock::now() + (is_urgent ? kGuaranteed : kLongest));
  while (task.state() == TaskState::running && steady_clock::now() < end) {
    if (!reap()) std::this_thread::yield();
  }
  return task.is_over();
}

/// Without threads: this one runs what waits, until the task is over (without one: all tasks).
bool SchedulerCore::wait_by_steps(const Task* task, steady_clock::time_point until) {
  for (;;) {
    if (task != nullptr && task->is_over()) return true;
    if (reap() || step()) continue;
    {
      const Lock lock(mutex_);
      if (task != nullptr ? task->is_over() : live_.empty()) return true;
      if (!can_progress(0)) {
        const Task& first = task != nullptr ? *task : *live_.begin()->second;
        throw InvalidArgument(format("{} cannot begin now, and nothing runs for it to wait for: {}",
                                     first.label(), explain_waiting(first)));
      }
    }
    if (steady_clock::now() >= until) return false;
    std::this_thread::sleep_for(kPause);
  }
}

bool SchedulerCore::runs_here() const {
  const auto& tasks = running_here();
  return std::any_of(tasks.begin(), tasks.end(),
                     [&](const Task* task) { return task->core_ == this; });
}

/// Whether a task can end without the `held` tasks that wait here.
bool SchedulerReport::can_progress(std::size_t held) const {
  if (issuing_ > held) return true;
  for (const Lane& lane : lanes_) {
    if (!lane.issued.empty()) return true;
  }
  if (!options.background) return false;
  const auto waiting = waiting_.heads();
  return std::any_of(waiting.begin(), waiting.end(), [&](const TaskPointer& task) {
    return may_start(*task) &&
           (judge(*task).kind == Verdict::Kind::admit || waits_for_others(*task));
  });
}

/// In the work of a task: the awaited one runs here, because its thread may be this one.
bool SchedulerCore::wait_inside(const TaskPointer& task, steady_clock::time_point until) {
  const auto& here = running_here();
  if (here.back() == task.get()) {
    throw InvalidArgument(
        format("{} waits for itself: it is over only after its work has returned", task->label()));
  }
  const auto held = static_cast<std::size_t>(std::count_if(
      here.begin(), here.end(), [&](const Task* each) { return each->core_ == this; }));
  std::vector<Task*> blocked;
  {
    const Lock lock(mutex_);
    if (needs(*task, here)) {
      throw InvalidArgument(format("{} waits for {}, which waits for it: neither could end",
                                   here.back()->label(), task->label()));
    }
    blocked = mark_blocked(here, *task);
    for (const Task* const each : here) {
      if (each->core_ == this) lend(task, each->qos());
    }
  }
  const std::shared_ptr<void> unblocked(nullptr, [&](void*) { unmark_blocked(blocked); });
  TaskWalk walk;
  while (!task->is_over()) {
    if (reap() || begin_here(task, walk)) continue;
    Lock lock(mutex_);
    if (task->is_over()) break;
    if (!can_progress(held)) {
      throw InvalidArgument(format("{} waits for {}, which can begin only after it: {}",
                                   here.back()->label(), task->label(), explain_waiting(*task)));
    }
    if (steady_clock::now() >= until) return false;
    eagerly([&] {
      return changed_.wait_for(lock, options.background ? std::chrono::microseconds(200) : kPause);
    });
  }
  return true;
}

std::unique_ptr<TaskHere> SchedulerCore::open(TaskSpec spec, const Stream& behind,
                                              const std::function<bool()>& is_interrupted) {
  if (!spec.after.empty()) {
    throw InvalidArgument("after=: a task of this thread goes behind the current stream alone");
  }
  const TaskPointer task = submit(std::move(spec), nullptr, behind);
  try {
    admit_here(task, is_interrupted);
  } catch (...) {  // a task without work that will not begin is over
    Over over;
    {
      const Lock lock(mutex_);
      if (!task->is_over()) fail(task, std::current_exception(), over);
    }
    over.settle(*this);
    throw;
  }
  std::unique_ptr<TaskHere> here;
  try {
    here = std::make_unique<TaskHere>(shared_from_this(), task);
  } catch (...) {
    issue(task, std::current_exception());
    throw;
  }
  if (const std::exception_ptr failure = here->failure()) {
    here->end();
    std::rethrow_exception(failure);
  }
  return here;
}

/// Returns when a task without work may begin in this thread.
void SchedulerCore::admit_here(const TaskPointer& task,
                               const std::function<bool()>& is_interrupted) {
  constexpr std::chrono::milliseconds kPiece(50);
  auto next_question = steady_clock::now() + kPiece;
  for (;;) {
    if (is_interrupted && steady_clock::now() >= next_question) {
      if (is_interrupted()) {
        throw TaskCancelled(
            format("{} was cancelled: its wait for its beginning was interrupted", task->label()));
      }
      next_question = steady_clock::now() + kPiece;
    }
    Lock lock(mutex_);
    if (task->is_over()) std::rethrow_exception(task->failure_);
    const bool held = !policy->is_foreign() && is_held(task->qos());
    if (!held && may_start(*task) && admit(*task, clock->now())) return;
    const auto inside = static_cast<std::size_t>(runs_here());
    if (!options.background || inside != 0) {
      const std::string why = explain_waiting(*task);
      const bool is_stuck = !can_progress(inside);
      lock.unlock();
      if (reap()) continue;
      if (is_stuck) {
        throw InvalidArgument(format("{} cannot begin now, and nothing runs for it to wait for: {}",
                                     task->label(), why));
      }
      lock.lock();
    }
    eagerly([&] {
      return changed_.wait_for(lock, options.background ? std::chrono::microseconds(200) : kPause);
    });
  }
}

/// Begins the task in this thread, or one that it goes behind. The walk goes on at the next call.
bool SchedulerCore::begin_here(const TaskPointer& task, TaskWalk& walk) {
  TaskPointer found;
  {
    const Lock lock(mutex_);
    if (is_closed_) return false;
    const bool goes_on = !walk.left.empty();
    if (!goes_on) walk = {{task}, {}};
    found = admit_foremost(walk);
    if (found == nullptr && goes_on) {  // tasks that the walk passed may begin by now
      walk = {{task}, {}};
      found = admit_foremost(walk);
    }
  }
  if (found != nullptr) run(found);
  return found != nullptr;
}

/// The next task of the walk that may begin, admitted; null at the end of the walk.
TaskPointer SchedulerCore::admit_foremost(TaskWalk& walk) {
  while (!walk.left.empty()) {
    const TaskPointer task = walk.left.back();
    const bool is_new = walk.seen.insert(task.get()).second;
    if (is_new && task->state() == TaskState::queued && task->predecessors_ != 0) {
      walk.left.insert(walk.left.end(), task->after_.rbegin(), task->after_.rend());
      continue;
    }
    walk.left.pop_back();
    if (task->state() != TaskState::queued || task->predecessors_ != 0) continue;
    if (!waiting_.contains(task) || !admit(*task, clock->now())) continue;
    waiting_.remove(task);
    return task;
  }
  return nullptr;
}

bool SchedulerCore::drain(std::optional<std::chrono::nanoseconds> timeout) {
  if (!may_call_driver()) return true;
  if (runs_here()) {
    throw InvalidArgument(
        "the work of a task cannot wait for the end of all tasks, its own among them");
  }
  const auto until = deadline_after(timeout);
  if (!options.background) return wait_by_steps(nullptr, until);
  if (serves_here()) return wait_in_callback([&] { return live_.empty(); }, until);
  Lock lock(mutex_);
  return eagerly([&] {
    return changed_.wait_until(lock, until, [&] {
      return live_.empty() && (callbacks_ == 0 || calling_here() == this) &&
             (!is_closed_ || threads_ == 0);
    });
  });
}

void SchedulerCore::cancel_queued(const TaskPointer& task, const char* reason, Over& over) {
  const auto failure =
      std::make_exception_ptr(TaskCancelled(format("{} was cancelled: {}", task->label(), reason)));
  finish(task, TaskState::cancelled, reason, failure, over);
}

bool SchedulerCore::cancel(const TaskPointer& task) {
  require_member(*task, "cancel() of");
  Over over;
  bool cancelled = false;
  {
    const Lock lock(mutex_);
    if (!task->is_over() && !task->is_issued_) {
      cancelled = true;
      task->cancelled_.store(true, std::memory_order_relaxed);
      if (task->state() == TaskState::queued) cancel_queued(task, "cancel() was called", over);
    }
  }
  over.settle(*this);
  return cancelled;
}

void SchedulerCore::at_end(const TaskPointer& task, std::function<void()> function) {
  require_member(*task, "a callback of");
  {
    const Lock lock(mutex_);
    if (!task->is_over()) {
      task->at_end_.push_back(std::move(function));
      ++callbacks_;
      wake_watcher();
      return;
    }
  }
  function();
}

}  // namespace kernwright::schedule
