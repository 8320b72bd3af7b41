// A task's work in one thread: its launches are counted, paced, cut, and those on other streams are
// joined.
#pragma once

#include "core/launch/launch_hook.h"
#include "core/launch/launch_pieces.h"
#include "core/stream.h"
#include "schedule/scheduler_core.h"

#include <memory>
#include <optional>
#include <vector>

namespace kernwright::schedule {

/// Lives while the work of a task is being queued. Launches of a cancelled task throw
/// TaskCancelled.
class TaskScope final : public LaunchHook {
 public:
  /// `memory`, if the task has a limit, counts the code and the local memory of its kernels.
  TaskScope(SchedulerCore& core, const TaskPointer& task, const Stream& stream,
            TaskMemory* memory = nullptr);
  ~TaskScope() override;
  TaskScope(const TaskScope&) = delete;
  TaskScope& operator=(const TaskScope&) = delete;

  void launch(const Kernel& kernel, const LaunchConfig& config, std::span<void* const> arguments,
              const LaunchSite& site) override;
  void launch_graph(Graph& graph, const Stream& stream, const LaunchSite& site) override;
  /// The task's stream goes behind the launches on other streams.
  void join();

 private:
  void launch_within(std::uint64_t most_blocks, const Kernel& kernel, const LaunchConfig& config,
                     std::span<void* const> arguments, const LaunchSite& site);
  /// One launch: it may wait in front of `queue`, is measured and counted.
  template <typename Queue>
  void pass(const WorkKey& work, const Stream& stream, const Queue& queue);
  void pass_pieces(LaunchPieces& pieces, const Stream& stream);
  /// The pieces of a best-effort launch; null where it is to be queued whole.
  template <typename Cutter>
  std::unique_ptr<LaunchPieces> cut(const WorkKey& work, const Cutter& cutter);
  std::optional<PieceRequest> find_cut(const WorkKey& work);
  std::unique_ptr<LaunchPieces> note_cut(const WorkKey& work, std::unique_ptr<LaunchPieces> pieces);
  bool is_captured(const Stream& stream) const;
  void count(const Stream& stream);

  SchedulerCore& core_;
  const TaskPointer pointer_;
  Task& task_;
  const Stream& stream_;
  TaskMemory* const memory_;
  std::vector<Stream> others_;  ///< each once
  bool is_on_legacy_ = false;
  const LaunchHookScope scope_;
};

}  // namespace kernwright::schedule
