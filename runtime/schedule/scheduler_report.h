// The inside of a scheduler: questions about its tasks.
#pragma once

#include "schedule/admission.h"
#include "schedule/scheduler_state.h"

#include <exception>
#include <string>
#include <vector>

namespace kernwright::schedule {

/// What a scheduler tells, to its users and to itself.
class SchedulerReport : public SchedulerState {
 public:
  using SchedulerState::SchedulerState;

  // These take the lock.
  std::string explain(const TaskPointer& task) const;
  std::vector<StateChange> history(const TaskPointer& task) const;
  TaskStats stats(const TaskPointer& task) const;
  std::exception_ptr failure(const TaskPointer& task) const;
  SchedulerStats stats() const;
  std::vector<TaskPointer> live() const;
  std::vector<TaskPointer> tasks() const;
  bool is_closed() const;

 protected:
  std::vector<TaskPointer> oldest_tasks(const Lane& lane, std::size_t most) const;
  void require_member(const Task& task, const char* what) const;  ///< needs no lock
  void unmark_blocked(const std::vector<Task*>& marked) noexcept;

  // These are asked with the lock held.
  Amount to_reserve(const Task& task) const noexcept;
  Verdict judge(const Task& task) const;
  /// Whether the memory is short, and would not be without other schedulers of the device.
  bool waits_for_others(const Task& task) const;
  std::vector<Holder> holders() const;
  std::string explain_waiting(const Task& task) const;
  std::string explain_hold(Qos qos) const;
  std::string find_refusal(const Task& task) const;
  TaskPointer failed_predecessor(const Task& task) const;
  /// Whether `task` can end only after one of the others: each task of a chain waits for the next
  /// one, or goes behind it.
  bool needs(const Task& task, const std::vector<Task*>& others) const;
  /// The tasks wait in their work for `awaited`. Returns tasks of this scheduler that were not
  /// marked before.
  std::vector<Task*> mark_blocked(const std::vector<Task*>& tasks, const Task& awaited);
  bool has_room(Qos qos) const noexcept;   ///< for one more of the class that runs
  bool may_start(const Task& task) const;  ///< by the limits of its class and its tenant
  bool has_issued() const noexcept;        ///< work on the device that is not known to be done
  bool looked_lately() const noexcept;     ///< for what is done; needs no lock
  /// Whether somebody waits for the end of a task: it is to be seen at once.
  bool is_eager() const noexcept { return eager_ != 0 || callbacks_ != 0 || waiting_.count() != 0; }
  /// Whether a task can end without the `held` tasks that wait here.
  bool can_progress(std::size_t held) const;
};

}  // namespace kernwright::schedule
