// The barrier of a cluster, and uses of the shared memory of its blocks.
#pragma once

#include "sim/check/order/block_order.h"
#include "sim/check/order/clock.h"
#include "sim/check/race/touch.h"
#include "sim/check/report/block_findings.h"

#include <cstdint>
#include <unordered_map>
#include <utility>

namespace kernwright::sim {

/// The cluster's barrier. Its first block keeps it for all.
struct ClusterBarrier {
  SharedPast open;
  SharedPast complete;       ///< what those who pass come after
  bool relaxed = false;      ///< some arrival released nothing
  bool was_relaxed = false;  ///< of the phase before

  /// A warp arrives with its knowledge or, relaxed, with its earlier releases.
  void arrive(const SharedPast& past, bool is_relaxed) {
    relaxed |= is_relaxed;
    open = join(open, past);
  }
  void end_phase() {
    complete = join(complete, std::exchange(open, nullptr));
    was_relaxed = std::exchange(relaxed, false);
  }
};

/// A block's knowledge of its cluster.
class ClusterOrder {
 public:
  explicit ClusterOrder(BlockCheck& check) : check_(check) {}

  /// Before another block begins.
  void clear() {
    barrier_ = {};
    arrivals_ = {};
    has_begun_ = false;
    visits_.clear();
  }
  /// Arrival of the active lanes at the cluster's barrier.
  void arrive(const Warp& warp, bool release);
  /// Called for the cluster's first block: all have arrived.
  void end_phase() { barrier_.end_phase(); }
  void pass(const Warp& warp, std::uint32_t lanes);
  /// Threads' accesses before their arrival are past if all wait.
  void end_arrivals(bool all_wait);
  /// An access to shared memory of `touch.owner`.
  void visit(const Op* op, Warp& warp, int lane, const LaneTouch& touch);
  /// The block ends. Reports uses of its shared memory under way.
  void end();

 private:
  ClusterBarrier& barrier() const;

  BlockCheck& check_;
  ClusterBarrier barrier_;                           ///< of the cluster; used in its first block
  BlockOrder::WarpTicks arrivals_{};                 ///< tick of each warp's first; 0: none
  bool has_begun_ = false;                           ///< some thread passed the barrier
  std::unordered_map<std::uint64_t, Visit> visits_;  ///< to here, by block and warp
};

}  // namespace kernwright::sim
