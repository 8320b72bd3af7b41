// The inside of a scheduler: its operations; shared by its sources only.
#pragma once

#include "schedule/admission.h"
#include "schedule/scheduler_state.h"

#include <chrono>
#include <memory>

namespace kernwright::schedule {

class TaskHere;

/// What a scheduler does. See SchedulerState for its locks.
class SchedulerCore final : public SchedulerState,
                            public std::enable_shared_from_this<SchedulerCore> {
 public:
  using SchedulerState::SchedulerState;

  // scheduler_core.cpp: from the submission to the beginning.
  /// Without work the task is not queued: open() begins it.
  TaskPointer submit(TaskSpec spec, std::shared_ptr<Work> work, const Stream& behind);
  std::unique_ptr<TaskHere> open(TaskSpec spec, const Stream& behind);
  bool step();
  void shut();  ///< takes no more tasks, and cancels what waits
  bool is_closed() const;

  // scheduler_run.cpp: from the beginning to the end.
  /// Runs an admitted task in this thread.
  void run(const TaskPointer& task);
  /// Ends tasks whose work is done on the device. True when there was one.
  bool reap();
  /// All work of the task is queued.
  void issue(const TaskPointer& task, std::exception_ptr failure);

  // scheduler_pace.cpp: launches of paced tasks.
  /// Waits until the launch may go. The number is for issued() or forget().
  Pacer::Number enter(const PacedLaunch& launch);
  void issued(Pacer::Number number, Event begin, Event end);
  void forget(Pacer::Number number) noexcept;
  /// Measures launches that are done. True when there was one.
  bool measure(bool waits = false);
  Event take_event();

  // scheduler_wait.cpp
  bool wait(const TaskPointer& task, std::optional<std::chrono::nanoseconds> timeout);
  void drain();
  bool is_own_thread() const noexcept;
  bool runs_here() const;  ///< whether this thread is in the work of a task
  bool cancel(const TaskPointer& task);
  void at_end(const TaskPointer& task, std::function<void()> function);

  // scheduler_report.cpp
  std::string explain(const TaskPointer& task) const;
  std::vector<StateChange> history(const TaskPointer& task) const;
  TaskStats stats(const TaskPointer& task) const;
  std::exception_ptr failure(const TaskPointer& task) const;
  SchedulerStats stats() const;
  std::vector<TaskPointer> live() const;
  std::vector<TaskPointer> tasks() const;

 private:
  friend class TaskHere;
  friend class TaskScope;

  using Ended = std::vector<std::pair<TaskPointer, std::exception_ptr>>;
  using Callbacks = std::vector<std::function<void()>>;

  void note(Task& task, TaskState state, std::string reason);
  std::shared_ptr<Tenant> find_tenant(const TaskSpec& spec, std::uint64_t id);
  void leave_tenant(Task& task) noexcept;
  void line_up(const TaskPointer& task);
  void link(const TaskPointer& task);
  std::optional<Event> mark_behind(const Stream& behind);
  Amount to_reserve(const Task& task) const noexcept;
  Verdict judge(const Task& task) const;
  std::vector<Holder> holders() const;
  bool may_start(const Task& task) const;  ///< by the limits of its class and its tenant
  bool may_run_inline(const Task& task) const;
  std::string find_refusal(const Task& task) const;
  TaskPointer failed_predecessor(const Task& task) const;
  void wake_tenant(Tenant& tenant);
  void require_member(const Task& task, const char* what) const;
  std::string explain_waiting(const Task& task) const;
  /// The next task of the class (of any without one), admitted; null when none may begin.
  TaskPointer next(Lock& lock, std::optional<Qos> qos);
  std::optional<std::size_t> choose(Lock& lock, const std::vector<TaskPointer>& heads);
  bool admit(Task& task);
  void lend(const TaskPointer& task, Qos qos);

  void release_successors(const TaskPointer& task, bool failed, Callbacks& callbacks);
  void finish(const TaskPointer& task, TaskState state, std::string reason,
              std::exception_ptr failure, Callbacks& callbacks);
  std::exception_ptr ask(const TaskPointer& task, bool& is_done) noexcept;
  void charge(Ended& ended);
  void end(const TaskPointer& task, const std::exception_ptr& found, Callbacks& callbacks);
  void end_after_failure(const TaskPointer& task) noexcept;
  void start_threads();
  void serve_class(Qos qos);
  void watch();
  bool wait_inside(const TaskPointer& task, std::chrono::steady_clock::time_point until);
  bool wait_by_steps(const Task* task, std::chrono::steady_clock::time_point until);
  bool begin_here(const TaskPointer& task);
  bool can_progress(std::size_t held) const;
  void cancel_queued(const TaskPointer& task, const char* reason, Callbacks& callbacks);
};

/// The tasks that this thread runs, the innermost last.
std::vector<const Task*>& running_here() noexcept;

}  // namespace kernwright::schedule
