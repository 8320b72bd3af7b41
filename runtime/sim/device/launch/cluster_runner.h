// Runs the blocks of one cluster side by side on one host thread.
#pragma once

#include "sim/device/launch/print.h"
#include "sim/exec/block/block_runner.h"
#include "sim/exec/block/cluster.h"

#include <array>
#include <cstdint>
#include <memory>
#include <vector>

namespace kernwright::sim {

/// Clusters of a launch; without any, each block is one.
std::uint64_t cluster_count(const LaunchContext& launch) noexcept;

/// Keeps its blocks' runners from cluster to cluster. Not thread-safe.
class ClusterRunner {
 public:
  /// All outlive the runner; `processors` as in BlockRunner.
  ClusterRunner(const LaunchContext& launch, PrintBuffer& print,
                std::span<const std::uint32_t> processors);

  /// The cluster with this index, counted as blocks are.
  void start(std::uint64_t cluster);
  /// Runs every block for one round. `running` until all are done or one has a finding.
  Progress advance();
  /// Both, to the end. False after a finding.
  bool run(std::uint64_t cluster);
  /// Whether all its remaining blocks seem to wait, as in BlockRunner.
  bool seems_to_wait() const noexcept;
  std::uint64_t waited_instructions() const noexcept;
  void give_up_waiting() noexcept;
  /// After `faulted`.
  const Fault& fault() const noexcept;

 private:
  struct Member {
    std::unique_ptr<BlockRunner> runner;
    std::uint64_t block = 0;  ///< linear index in the grid
    Progress progress = Progress::running;
  };
  Progress relieve();

  std::array<std::uint32_t, 3> shape_, grid_;
  PrintBuffer& print_;
  Cluster cluster_;
  std::vector<Member> members_;  ///< by rank
};

}  // namespace kernwright::sim
