// A task's work in one thread: its launches are counted, and those on other streams are joined.
#pragma once

#include "core/launch/launch_gate.h"
#include "core/stream.h"
#include "schedule/scheduler_core.h"

#include <vector>

namespace kernwright::schedule {

/// Lives while the work of a task is being queued.
class TaskScope final : public LaunchGate {
 public:
  TaskScope(SchedulerCore& core, const TaskPointer& task, const Stream& stream);
  ~TaskScope();
  TaskScope(const TaskScope&) = delete;
  TaskScope& operator=(const TaskScope&) = delete;

  /// Throws TaskCancelled when that was asked for.
  void before(const void* work, std::uint64_t blocks, const Stream& stream) override;
  void after(const Stream& stream) override;
  /// The task's stream goes behind the launches on other streams.
  void join();

 private:
  void drop_entry() noexcept;

  SchedulerCore& core_;
  const TaskPointer pointer_;
  Task& task_;
  const Stream& stream_;
  std::vector<Stream> others_;  ///< each once
  bool is_on_legacy_ = false;
  std::optional<Pacer::Number> number_;  ///< of the launch that is under way
  std::optional<Event> begin_;           ///< in front of it
  const LaunchGateScope scope_;
};

}  // namespace kernwright::schedule
