// The work of an admitted task in one thread, from its beginning to its end.
#pragma once

#include "core/launch/launch_hook.h"
#include "memory/evictable_buffer.h"
#include "memory/resource_scope.h"
#include "memory/transfer_engine.h"
#include "schedule/scheduler.h"
#include "schedule/task_scope.h"

#include <exception>
#include <memory>
#include <optional>

namespace kernwright::schedule {

/// While it lives, launches, arrays and copies of this thread belong to the task. Begins and
/// ends in one thread; several end in the reverse order of their beginning.
class TaskHere {
 public:
  /// Failures are kept for end().
  TaskHere(std::shared_ptr<SchedulerCore> core, const TaskPointer& task) noexcept;
  /// end()
  ~TaskHere();
  TaskHere(const TaskHere&) = delete;
  TaskHere& operator=(const TaskHere&) = delete;

  const TaskPointer& task() const noexcept { return task_; }
  const Stream& stream() const noexcept { return stream_; }
  /// Of the beginning; null when it went well.
  const std::exception_ptr& failure() const noexcept { return failure_; }
  /// All work is queued; with a failure the task fails. Later calls do nothing. Throws DeviceLost.
  void end(std::exception_ptr failure = nullptr);
  /// Whether end() may be called: in this thread, and no task has begun here since.
  bool is_innermost() const noexcept;
  /// For one that cannot end in its place: the task fails. Its thread may still refer to `here`,
  /// which therefore stays for good.
  static void abandon(std::unique_ptr<TaskHere> here) noexcept;

 private:
  void begin();
  std::shared_ptr<EvictionGroup> find_group() const;
  std::shared_ptr<TaskMemory> make_memory();

  const std::shared_ptr<SchedulerCore> core_;
  const TaskPointer task_;
  const Stream stream_;
  std::exception_ptr failure_;
  std::optional<ResourceScope> memory_;
  std::optional<EvictionScope> evictable_;
  std::optional<TransferScope> copies_;
  std::optional<TaskScope> launches_;
  bool is_over_ = false;
};

/// The hook for launches as tasks of their own, each begun and ended around the
/// launch. The scheduler's end makes them plain launches.
class LaunchTasks final : public LaunchHook {
 public:
  LaunchTasks(std::shared_ptr<Scheduler> scheduler, TaskSpec spec)
      : scheduler_(std::move(scheduler)), spec_(std::move(spec)) {}
  void launch(const Kernel& kernel, const LaunchConfig& config, std::span<void* const> arguments,
              const LaunchSite& site) override;
  void launch_graph(Graph& graph, const Stream& stream, const LaunchSite& site) override;

 private:
  template <typename Launch>
  void run(const Stream& stream, const Launch& launch);

  const std::shared_ptr<Scheduler> scheduler_;
  const TaskSpec spec_;
};

}  // namespace kernwright::schedule
