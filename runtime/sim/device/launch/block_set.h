// The blocks of one worker of a launch, in clusters or not.
#pragma once

#include "sim/device/launch/cluster_runner.h"
#include "sim/device/launch/print.h"

#include <atomic>
#include <cstdint>
#include <memory>
#include <vector>

namespace kernwright::sim {

/// Runs clusters (or single blocks) one after the other. One that seems to wait for others (a flag
/// of a later block, a hand-made barrier of the grid) is set aside while the next ones begin, as
/// many as the device holds at a time. It runs on after each of them. The blocks of a cooperative
/// launch are set aside from the start. Not thread-safe.
class BlockSet {
 public:
  /// All outlive it. `aside` counts the blocks put aside by all sets of the launch. `processors` as
  /// in BlockRunner.
  BlockSet(const LaunchContext& launch, PrintBuffer& print, std::atomic<std::uint64_t>& aside,
           std::span<const std::uint32_t> processors);
  ~BlockSet() { all_aside_ -= aside_.size() * blocks_each_; }
  BlockSet(const BlockSet&) = delete;
  BlockSet& operator=(const BlockSet&) = delete;

  /// Runs the cluster with this number to its end or sets it aside. False after a finding.
  bool run(std::uint64_t cluster);
  /// Sets it aside before it ran.
  void begin(std::uint64_t cluster);
  /// Runs each of those set aside for a time slice. False after a finding.
  bool run_round() { return run_aside(false); }
  /// Whether some were set aside and have not ended.
  bool is_waiting() const noexcept { return !aside_.empty(); }
  /// run_round(), when no more begin: there is a finding where all of them have only waited for
  /// longer than a warp may run.
  bool finish_round() { return run_aside(true); }
  /// All of those seem to wait.
  bool is_stuck() const noexcept;
  /// Ends those behind `cluster` where they are.
  void drop_behind(std::uint64_t cluster);

  /// After a finding.
  const Fault& fault() const noexcept { return failed_.runner->fault(); }
  std::uint64_t faulty_cluster() const noexcept { return failed_.cluster; }

 private:
  struct Member {
    std::unique_ptr<ClusterRunner> runner;
    std::uint64_t cluster = 0;
  };
  std::unique_ptr<ClusterRunner> take_runner();
  bool run_aside(bool is_complete);
  bool fail(Member&& member);
  template <typename F>
  void drop_if(F is_over);

  const LaunchContext& launch_;
  PrintBuffer& print_;
  std::atomic<std::uint64_t>& all_aside_;
  std::span<const std::uint32_t> processors_;
  std::uint64_t blocks_each_;  ///< of a cluster
  std::vector<Member> aside_;  ///< in the order in which they began
  std::vector<std::unique_ptr<ClusterRunner>> idle_;
  Member failed_;
};

}  // namespace kernwright::sim
