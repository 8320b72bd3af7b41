// A task's work in one thread: its launches are counted, paced, cut, and those on other streams are
// joined.
#pragma once

#include "core/launch/launch_hook.h"
#include "core/launch/launch_pieces.h"
#include "core/stream.h"
#include "schedule/scheduler_core.h"
#include "schedule/yield_words.h"

#include <array>
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
  void refuse_cancelled() const;
  /// One launch: it may wait in front of `queue`, is measured and counted.
  template <typename Queue>
  void pass(const WorkKey& work, const Stream& stream, const Queue& queue);
  template <typename Queue>
  Pacer::Number pass_paced(PacedLaunch launch, const Stream& stream, const Queue& queue);
  void pass_pieces(LaunchPieces& pieces, const Stream& stream);
  /// Queues a piece that yields again and again, until the rest of it can be told to stop no more.
  void pass_yielding(LaunchPieces& piece, const Stream& stream);
  void wait_yielding(Pacer::Number number);
  /// For a new launch that yields.
  YieldWords& take_words();
  /// The pieces of a best-effort launch; null where it is to be queued whole.
  template <typename Cutter>
  std::unique_ptr<LaunchPieces> cut(const WorkKey& work, const Cutter& cutter);
  std::optional<PieceRequest> find_cut(const WorkKey& work);
  std::unique_ptr<LaunchPieces> note_cut(const WorkKey& work, const PieceRequest& request,
                                         std::unique_ptr<LaunchPieces> pieces);
  bool is_captured(const Stream& stream) const;
  void count(const Stream& stream);

  SchedulerCore& core_;
  const TaskPointer pointer_;
  Task& task_;
  const Stream& stream_;
  TaskMemory* const memory_;
  std::array<std::optional<YieldWords>, 2> words_;  ///< the last launch may still run
  std::size_t turn_ = 0;                            ///< of `words_`
  std::vector<Stream> others_;                      ///< each once
  bool is_on_legacy_ = false;
  const LaunchHookScope scope_;
};

}  // namespace kernwright::schedule
