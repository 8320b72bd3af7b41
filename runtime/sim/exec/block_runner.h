// Runs blocks to completion on one host thread.
#pragma once

#include "sim/exec/warp.h"

#include <memory>

namespace kernwright::sim {

/// One per host thread and launch; keeps frames, warps, shared and local memory from block to
/// block. Not thread-safe; different runners of the same launch run at the same time.
class BlockRunner {
 public:
  explicit BlockRunner(const LaunchContext& launch);
  ~BlockRunner();
  BlockRunner(const BlockRunner&) = delete;
  BlockRunner& operator=(const BlockRunner&) = delete;

  /// Runs block `ctaid`. Returns false when it stopped on a finding, which fault() then holds.
  bool run(std::array<std::uint32_t, 3> ctaid);
  const FaultReport& fault() const noexcept;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace kernwright::sim
