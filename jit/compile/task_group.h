// Compiles of one caller that run at the same time.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>

namespace kernwright {

/// Tasks in threads of its own, begun in their order, under the wait limits of the thread that made
/// the group. With the caller's thread, at most as many run at a time as there are processors;
/// where there is one, or no thread can be started, tasks run in wait(). For one thread.
class TaskGroup {
 public:
  using Task = std::function<void()>;

  TaskGroup();
  /// Stops what runs, and begins no other task. No thread is left.
  ~TaskGroup();
  TaskGroup(const TaskGroup&) = delete;
  TaskGroup& operator=(const TaskGroup&) = delete;

  /// Begins the task when a thread is free. Returns its number: 0, 1 and so on.
  std::size_t add(Task task);
  /// Returns when that task is done; meanwhile runs tasks not begun yet in the calling thread.
  /// Throws the task's exception, or Cancelled or Interrupted if the caller must stop waiting.
  void wait(std::size_t number);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace kernwright
