// Lines of waiting tasks.
#include "schedule/waiting.h"

namespace kernwright::schedule {

Waiting::Key Waiting::find_key(const Task& task) noexcept {
  const Tenant& tenant = *task.tenant_;
  return {task.qos(), tenant.number,
          task.spec_.request().memory != 0 || tenant.request().has_value()};
}

void Waiting::add(const TaskPointer& task) {
  const auto line = lines_.try_emplace(find_key(*task), Less{&policy_}).first;
  try {
    if (line->second.insert(task).second) ++counts_[ordinal(task->qos())];
  } catch (...) {
    if (line->second.empty()) lines_.erase(line);
    throw;
  }
}

bool Waiting::remove(const TaskPointer& task) noexcept {
  const auto line = lines_.find(find_key(*task));
  if (line == lines_.end() || line->second.erase(task) == 0) return false;
  --counts_[ordinal(task->qos())];
  if (line->second.empty()) lines_.erase(line);
  return true;
}

bool Waiting::contains(const TaskPointer& task) const {
  const auto line = lines_.find(find_key(*task));
  return line != lines_.end() && line->second.contains(task);
}

void Waiting::move(const TaskPointer& task, Qos qos) {
  const auto from = lines_.find(find_key(*task));
  if (from == lines_.end() || !from->second.contains(task)) {
    task->lent_.store(qos, std::memory_order_relaxed);
    return;
  }
  Key key = find_key(*task);
  std::get<Qos>(key) = qos;
  Line& line =
      lines_.try_emplace(key, Less{&policy_}).first->second;  // from here on nothing throws
  line.insert(from->second.extract(task));
  if (from->second.empty()) lines_.erase(from);
  --counts_[ordinal(task->qos())];
  ++counts_[ordinal(qos)];
  task->lent_.store(qos, std::memory_order_relaxed);
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
