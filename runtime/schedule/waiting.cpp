// Lines of waiting tasks.
#include "schedule/waiting.h"

namespace kernwright::schedule {

Waiting::Key Waiting::find_key(const Task& task) noexcept {
  const Tenant* const tenant = task.tenant_.get();
  return {task.qos(), tenant, task.spec_.request().memory != 0 || tenant->request().has_value()};
}

void Waiting::add(const TaskPointer& task) {
  Line& line = lines_.try_emplace(find_key(*task), Less{&policy_}).first->second;
  if (line.insert(task).second) ++counts_[ordinal(task->qos())];
}

bool Waiting::remove(const TaskPointer& task) {
  const auto line = lines_.find(find_key(*task));
  if (line == lines_.end() || line->second.erase(task) == 0) return false;
  --counts_[ordinal(task->qos())];
  if (line->second.empty()) lines_.erase(line);
  return true;
}

std::vector<TaskPointer> Waiting::heads() const {
  std::vector<TaskPointer> firsts;
  for (const auto& [key, line] : lines_) firsts.push_back(*line.begin());
  return firsts;
}

std::vector<TaskPointer> Waiting::all() const {
  std::vector<TaskPointer> tasks;
  for (const auto& [key, line] : lines_) tasks.insert(tasks.end(), line.begin(), line.end());
  return tasks;
}

std::size_t Waiting::count_ahead(const Task& task) const {
  std::size_t ahead = 0;
  for (const auto& [key, line] : lines_) {
    const Qos qos = std::get<0>(key);
    if (qos > task.qos()) continue;
    for (const TaskPointer& other : line) {
      if (other.get() == &task) continue;
      if (qos < task.qos() || policy_.before(*other, task)) ++ahead;
    }
  }
  return ahead;
}

}  // namespace kernwright::schedule
