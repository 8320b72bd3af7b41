// The inside of a scheduler: its operations; shared by its sources only.
#pragma once

#include "schedule/scheduler_report.h"

#include <chrono>
#include <functional>
#include <memory>
#include <set>

namespace kernwright::schedule {

class TaskHere;

/// A walk over a task and those that it goes behind, the foremost first.
struct TaskWalk {
  std::vector<TaskPointer> left;  ///< the next one last
  std::set<const Task*> seen;
};

/// What a scheduler does. See SchedulerState for its locks.
class SchedulerCore final : public SchedulerReport,
                            public std::enable_shared_from_this<SchedulerCore> {
 public:
  using SchedulerReport::SchedulerReport;

  // scheduler_core.cpp: from the submission to the beginning.
  /// Without work the task is not queued: open() begins it.
  TaskPointer submit(TaskSpec spec, std::shared_ptr<Work> work, const Stream& behind);
  std::unique_ptr<TaskHere> open(TaskSpec spec, const Stream& behind,
                                 const std::function<bool()>& is_interrupted);
  bool step();
  void note_room();  ///< memory came back: waiting tasks may begin
  void shut();       ///< takes no more tasks, and cancels what waits

  // scheduler_run.cpp: from the beginning to the end.
  /// Runs an admitted task in this thread.
  void run(const TaskPointer& task);
  /// Ends tasks whose work is done on the device. True when there was one.
  /// Another thread at it does it for this one, which may wait for that.
  bool reap(bool waits = false);
  /// All work of the task is queued.
  void issue(const TaskPointer& task, std::exception_ptr failure);

  // scheduler_pace.cpp: launches of paced tasks.
  /// Waits until the launch may go. The number is for issued() or forget().
  Pacer::Number enter(PacedLaunch launch);
  void issued(Pacer::Number number, Event begin, Event end);
  void forget(Pacer::Number number) noexcept;
  /// Measures launches that are done. True when there was one.
  bool measure(bool waits = false);
  /// One with `timing`, or a mark that costs less.
  Event take_event(bool timing = true);

  // scheduler_wait.cpp
  bool wait(const TaskPointer& task, std::optional<std::chrono::nanoseconds> timeout, WaitBy by);
  bool drain(std::optional<std::chrono::nanoseconds> timeout = {});
  bool serves_here() const noexcept;
  bool runs_here() const;  ///< whether this thread is in the work of a task
  bool cancel(const TaskPointer& task);
  void at_end(const TaskPointer& task, std::function<void()> function);

 private:
  class EagerScope;
  friend class TaskHere;
  friend class TaskScope;

  using Ended = std::vector<std::pair<TaskPointer, std::exception_ptr>>;
  /// Tasks that ended while the lock was held: what their ends set free goes with no lock held.
  /// They are linked among themselves, so that the end of a task needs no memory.
  class Over {
   public:
    void add(const TaskPointer& task) noexcept;
    void settle(SchedulerCore& core) noexcept;
    /// The part of settle() that calls nothing of the user.
    void leave_content() noexcept;
    bool has_calls() const noexcept;
    bool is_empty() const noexcept { return first_ == nullptr; }
    /// The first one; Task::next_over_ leads on.
    Task* first() const noexcept { return first_.get(); }
    /// Takes the tasks of another one, behind its own.
    void append(Over& other) noexcept;

   private:
    TaskPointer first_;
    Task* last_ = nullptr;
  };

  Over left_;  ///< for the watching thread: their calls belong to no thread of the user

  void note(Task& task, TaskState state, std::string reason, Time now);
  std::shared_ptr<Tenant> find_tenant(const TaskSpec& spec, std::uint64_t id);
  void leave_tenant(Task& task) noexcept;
  bool enqueue(const TaskPointer& task, Over& over, Time now);
  void line_up(const TaskPointer& task, Time now);
  void link(const TaskPointer& task);
  std::optional<Event> mark_behind(const Stream& behind, Time now);
  bool may_run_inline(const Task& task) const;
  void wake_tenant(const std::shared_ptr<Tenant>& tenant) noexcept;
  /// The next task of the class (of any without one), admitted; null when none may begin.
  TaskPointer next(Lock& lock, std::optional<Qos> qos);
  std::optional<std::size_t> choose(Lock& lock, const std::vector<TaskPointer>& heads);
  bool admit(Task& task, Time now);
  void lend(const TaskPointer& task, Qos qos);

  void release_successors(Task& task, bool failed, Over& over) noexcept;
  void release_next(Task& task, bool failed, Over& over) noexcept;
  void finish(const TaskPointer& task, TaskState state, std::string reason,
              std::exception_ptr failure, Over& over) noexcept;
  void conclude(const TaskPointer& task, TaskState state, std::string reason,
                std::exception_ptr failure, Over& over) noexcept;
  void fail(const TaskPointer& task, const std::exception_ptr& failure, Over& over) noexcept;
  void settle(Over& over) noexcept;
  void settle_left(Lock& lock) noexcept;
  void keep_event(std::optional<Event>& event) noexcept;
  void collect(const Lane& lane, Ended& ended);
  void charge(Ended& ended);
  void end(const TaskPointer& task, const std::exception_ptr& found, Over& over) noexcept;
  void end_after_failure(const TaskPointer& task) noexcept;
  /// Wakes the threads that may go on, except those that begin tasks of the class `but`.
  void tell_change(std::optional<Qos> but = std::nullopt) noexcept;
  void wake_watcher() noexcept;
  /// `wait` on `changed_`, with ends of tasks seen at once meanwhile.
  template <typename Wait>
  auto eagerly(const Wait& wait) {
    ++eager_;
    wake_watcher();
    const auto result = wait();
    --eager_;
    return result;
  }
  void start_threads();
  void serve_class(Qos qos);
  void watch();
  bool spin(const Task& task, std::chrono::steady_clock::time_point until);
  template <typename Predicate>
  bool wait_in_callback(const Predicate& is_over, std::chrono::steady_clock::time_point until);
  bool wait_inside(const TaskPointer& task, std::chrono::steady_clock::time_point until);
  bool wait_by_steps(const Task* task, std::chrono::steady_clock::time_point until);
  void admit_here(const TaskPointer& task, const std::function<bool()>& is_interrupted);
  bool begin_here(const TaskPointer& task, TaskWalk& walk);
  TaskPointer admit_foremost(TaskWalk& walk);
  void cancel_queued(const TaskPointer& task, const char* reason, Over& over);
};

/// The tasks that this thread runs, the innermost last.
std::vector<Task*>& running_here() noexcept;

/// The scheduler for which this thread calls functions at ends of tasks, or null.
const SchedulerCore* calling_here() noexcept;

}  // namespace kernwright::schedule
