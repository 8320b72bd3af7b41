// Runs blocks to completion on one host thread.
#pragma once

#include "sim/exec/warp/warp.h"

#include <memory>
#include <span>

namespace kernwright::sim {

struct Cluster;

/// Shared memory is filled with this byte when a block begins (a GPU leaves it undefined). A kernel
/// without the initialisation computes visible nonsense (-4.3e8 as a float), always the same.
inline constexpr unsigned char kSharedPoison = 0xcd;

enum class Progress : std::uint8_t { running, waiting, done, faulted };

/// One per host thread and launch; keeps frames, warps, shared and local memory from block to
/// block. Not thread-safe; different runners of the same launch run at the same time. Local memory
/// is zero in the first block and later keeps the contents of earlier blocks.
class BlockRunner {
 public:
  /// `processors`: values of %smid, dealt out to the blocks in turn; empty: all below
  /// `launch.sm_count`. They outlive the runner.
  explicit BlockRunner(const LaunchContext& launch, std::span<const std::uint32_t> processors = {});
  ~BlockRunner();
  BlockRunner(const BlockRunner&) = delete;
  BlockRunner& operator=(const BlockRunner&) = delete;

  /// Runs block `ctaid`. Returns false when it stopped on a finding; fault() then has it.
  bool run(std::array<std::uint32_t, 3> ctaid);
  const Fault& fault() const noexcept;

  /// For blocks that wait for each other (cooperative launches): start(), then advance() as often
  /// as it returns `running`, blocks in turn. Each call gives every warp one time slice: until it
  /// exits, waits or has used up its fairness window. `faulted` too when `launch.stop` is due. A
  /// block of a larger cluster may become `waiting`: it cannot go on before another block acts.
  void start(std::array<std::uint32_t, 3> ctaid);
  Progress advance();
  /// Whether for many rounds every running warp only went round in a loop that may wait for another
  /// thread: perhaps for a thread of a block that has not begun.
  bool seems_to_wait() const noexcept;
  /// Warp instructions of those rounds.
  std::uint64_t waited_instructions() const noexcept;
  /// Ends such a wait: the next round is `faulted`, as where a warp's budget is used up.
  void give_up_waiting() noexcept;

  /// From the next start() on a block of `cluster`; the cluster outlives the runner's use.
  void join(Cluster& cluster, std::uint32_t rank);
  /// When all blocks of the cluster wait: runs a postponed copy or ends waits for an mbarrier by
  /// their time limit, and returns `running`; if this cannot help any more, `faulted`.
  Progress relieve();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace kernwright::sim
