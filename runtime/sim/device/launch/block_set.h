// The blocks of one worker of a launch that is not cooperative, in clusters or not.
#pragma once

#include "sim/device/launch/cluster_runner.h"
#include "sim/device/launch/print.h"

#include <atomic>
#include <cstdint>
#include <memory>
#include <vector>

namespace kernwright::sim {

/// Runs clusters, each block one where there are none, one after the other. One that seems to wait
/// for others (a flag of a block further on, a barrier of the grid made by hand) is put aside while
/// the next ones begin, as many as the device holds at a time, and runs on after each. Not
/// thread-safe.
class BlockSet {
 public:
  /// All outlive it. `aside` counts the blocks put aside by all sets of the launch. `sm` is the
  /// value of %smid in them.
  BlockSet(const LaunchContext& launch, PrintBuffer& print, std::atomic<std::uint64_t>& aside,
           std::uint32_t sm);
  ~BlockSet() { all_aside_ -= aside_.size() * blocks_each_; }
  BlockSet(const BlockSet&) = delete;
  BlockSet& operator=(const BlockSet&) = delete;

  /// Runs the cluster of that number to its end or puts it aside. False after a finding.
  bool run(std::uint64_t cluster);
  /// Some were put aside and have not ended.
  bool is_waiting() const noexcept { return !aside_.empty(); }
  /// Runs each of those for a time slice, when no more begin. False after a finding; one is made
  /// where all of them have only waited for longer than a warp may run.
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
  bool run_aside(bool is_complete);
  bool fail(Member&& member);
  template <typename F>
  void drop_if(F is_over);

  const LaunchContext& launch_;
  PrintBuffer& print_;
  std::atomic<std::uint64_t>& all_aside_;
  std::uint32_t sm_;
  std::uint64_t blocks_each_;  ///< of a cluster
  std::vector<Member> aside_;  ///< in the order in which they began
  std::vector<std::unique_ptr<ClusterRunner>> idle_;
  Member failed_;
};

}  // namespace kernwright::sim
