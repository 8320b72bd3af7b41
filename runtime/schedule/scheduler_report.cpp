// What a scheduler tells about its tasks.
#include "schedule/scheduler_report.h"

#include "base/format.h"

#include <algorithm>
#include <set>

namespace kernwright::schedule {

std::vector<Holder> SchedulerReport::holders() const {
  std::vector<Holder> all;
  for (const auto& [id, task] : live_) {
    if (task->reservation_.is_held()) all.push_back({task->label(), task->reservation_.amount()});
  }
  for (const auto& [name, tenant] : tenants_) {
    if (tenant->held.is_held()) all.push_back({name, tenant->held.amount()});
  }
  return all;
}

bool SchedulerReport::waits_for_others(const Task& task) const {
  const std::uint64_t asked = to_reserve(task).memory;
  const std::uint64_t free = budget_.free().memory;
  return asked > free && asked - free <= budget_.held_elsewhere();
}

std::string SchedulerReport::explain_hold(Qos qos) const {
  return format("the policy {} keeps its class back while {} run or wait", policy->name(),
                qos == Qos::best_effort ? "tasks of other classes" : "guaranteed tasks");
}

/// Why a queued task does not begin now.
std::string SchedulerReport::explain_waiting(const Task& task) const {
  if (task.predecessors_ != 0) {
    std::string names;
    for (const TaskPointer& before : task.after_) {
      if (!before->is_over() && !before->is_issued_) {
        names += format("{}{}", names.empty() ? "" : ", ", before->label());
      }
    }
    return format("it goes behind the work of {}", names);
  }
  const Amount asked = to_reserve(task);
  const std::size_t ahead = task.work_ != nullptr ? waiting_.count_ahead(task) : 0;
  const std::string place = ahead == 1 ? "1 task is ahead" : format("{} tasks are ahead", ahead);
  if (!budget_.fits(asked)) {
    const std::string shortage = describe_shortage(asked, budget_, holders());
    return ahead == 0 ? shortage : format("{}; {}", shortage, place);
  }
  const std::size_t running = running_[ordinal(task.qos())];
  if (running >= options.most_running[ordinal(task.qos())]) {
    return format("{} tasks of its class run, the most at once", running);
  }
  if (!may_start(task)) {
    return format("{} had {:.0f} % of the last second, its limit is {:.0f} %", task.tenant_->name(),
                  100 * task.tenant_->meter().second_fraction(clock->now()),
                  100 * task.tenant_->limit());
  }
  if (is_held(task.qos())) return explain_hold(task.qos());
  if (!policy_failure_.empty()) {
    return format("the policy {} failed: {}", policy->name(),
                  policy_failure_.substr(0, policy_failure_.find('\n')));
  }
  if (ahead != 0) return place;
  if (policy->is_foreign()) return format("the policy {} has not chosen it", policy->name());
  return "it is next";
}

bool SchedulerReport::needs(const Task& task, const std::vector<Task*>& others) const {
  std::vector<const Task*> left = {&task};
  std::set<const Task*> seen;
  while (!left.empty()) {
    const Task* const each = left.back();
    left.pop_back();
    if (each->is_over() || each->is_issued_ || !seen.insert(each).second) continue;
    if (std::find(others.begin(), others.end(), each) != others.end()) return true;
    if (each->awaited_ != nullptr) left.push_back(each->awaited_);
    if (each->predecessors_ == 0) continue;
    for (const TaskPointer& before : each->after_) left.push_back(before.get());
  }
  return false;
}

std::vector<Task*> SchedulerReport::mark_blocked(const std::vector<Task*>& tasks,
                                                 const Task& awaited) {
  std::vector<Task*> marked;
  for (Task* const task : tasks) {
    if (task->core_ == this && task->awaited_ == nullptr) marked.push_back(task);
  }
  for (Task* const task : marked) {
    task->awaited_ = &awaited;
    ++blocked_[ordinal(lanes_[task->lane_].qos)];
  }
  return marked;
}

void SchedulerReport::unmark_blocked(const std::vector<Task*>& marked) noexcept {
  const Lock lock(mutex_);
  for (Task* const task : marked) {
    task->awaited_ = nullptr;
    --blocked_[ordinal(lanes_[task->lane_].qos)];
  }
}

std::string SchedulerReport::explain(const TaskPointer& task) const {
  require_member(*task, "explain() of");
  const Lock lock(mutex_);
  const TaskState state = task->state();
  const std::string& reason = task->changes_[task->change_count_ - 1].reason;
  std::string text =
      format("{} ({}) is {}", task->label(), qos_name(task->spec_.qos), state_name(state));
  if (task->qos() != task->spec_.qos && !task->is_over()) {
    text += format(", in the class {} of a task that waits for it", qos_name(task->qos()));
  }
  if (state == TaskState::queued) return format("{}: {}", text, explain_waiting(*task));
  if (state == TaskState::running) {
    if (task->has_yielded_.load(std::memory_order_relaxed)) {
      return text + ": a launch yielded to more urgent work, and goes on behind it";
    }
    if (pacer_.may_stop(*task)) {
      return text + ": its launch on the device stops when more urgent work comes";
    }
    if (task->waits_to_launch_) {
      return format("{}: a launch waits: {}", text,
                    is_held(task->qos()) ? explain_hold(task->qos()) : "others are in front of it");
    }
    return format(
        "{}: {}", text,
        task->is_issued_ ? "its work is queued on the device" : "its work is being queued");
  }
  return reason.empty() ? text : format("{}: {}", text, reason);
}

std::vector<StateChange> SchedulerReport::history(const TaskPointer& task) const {
  constexpr const char* kReasons[] = {"submitted", "nothing that it asks for is short",
                                      "its turn came", "its work begins", "its work ended"};
  require_member(*task, "history() of");
  const Lock lock(mutex_);
  const auto begin = task->changes_.begin();
  std::vector<StateChange> changes(begin, begin + static_cast<std::ptrdiff_t>(task->change_count_));
  for (StateChange& change : changes) {  // those of a task that nothing keeps back have no text
    const auto state = static_cast<std::size_t>(change.state);
    if (change.reason.empty() && state < std::size(kReasons)) change.reason = kReasons[state];
  }
  return changes;
}

TaskStats SchedulerReport::stats(const TaskPointer& task) const {
  require_member(*task, "stats() of");
  const Lock lock(mutex_);
  Time begin = clock->now();
  for (std::size_t i = 1; i < task->change_count_; ++i) {
    const StateChange& change = task->changes_[i];
    if (change.state == TaskState::running || schedule::is_over(change.state)) {
      begin = change.time;
      break;
    }
  }
  return {.queued = begin - task->submitted_,
          .device = task->device_,
          .launches = task->launches_.load(std::memory_order_relaxed),
          .bytes = task->spec_.request().memory,
          .peak = task->memory_ != nullptr ? task->memory_->peak() : task->peak_,
          .preemptions = task->preemptions_.load(std::memory_order_relaxed)};
}

std::exception_ptr SchedulerReport::failure(const TaskPointer& task) const {
  require_member(*task, "failure() of");
  const Lock lock(mutex_);
  return task->is_over() ? task->failure_ : nullptr;
}

SchedulerStats SchedulerReport::stats() const {
  SchedulerStats stats;
  stats.capacity = budget_.capacity();
  stats.reserved = budget_.reserved();
  const Lock lock(mutex_);
  stats.now = clock->now();
  stats.classes = classes_;
  for (const Qos qos : kAllClasses) {
    stats.classes[ordinal(qos)].waiting = waiting_.count(qos);
    stats.classes[ordinal(qos)].running = running_[ordinal(qos)];
  }
  for (const auto& [name, tenant] : tenants_) {
    stats.tenants.push_back({.name = name,
                             .share = tenant->request().value_or(0),
                             .used = tenant->meter().second_fraction(stats.now),
                             .used_shortly = tenant->meter().slot_fraction(stats.now),
                             .live = tenant->live,
                             .device = tenant->meter().total()});
  }
  return stats;
}

std::vector<TaskPointer> SchedulerReport::live() const {
  const Lock lock(mutex_);
  std::vector<TaskPointer> tasks;
  for (const auto& [id, task] : live_) tasks.push_back(task);
  return tasks;
}

std::vector<TaskPointer> SchedulerReport::tasks() const {
  const Lock lock(mutex_);
  std::vector<TaskPointer> tasks(ended_.begin(), ended_.end());
  for (const auto& [id, task] : live_) tasks.push_back(task);
  return tasks;
}

}  // namespace kernwright::schedule
