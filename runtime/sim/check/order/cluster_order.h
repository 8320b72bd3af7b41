// The barrier of a cluster, and who uses the shared memory of a block of it.
#pragma once

#include "sim/check/order/block_order.h"
#include "sim/check/order/clock.h"
#include "sim/check/race/touch.h"

#include <cstdint>
#include <unordered_map>
#include <utility>

namespace kernwright::sim {

/// The cluster's barrier. Its first block keeps it for all.
class ClusterBarrier {
 public:
  void clear() { *this = {}; }
  /// A warp arrives with what it knows, or, relaxed, with what it released before.
  void arrive(const SharedPast& past, bool relaxed) {
    relaxed_ |= relaxed;
    open_ = join(open_, past);
  }
  void end_phase() {
    complete_ = join(complete_, std::exchange(open_, nullptr));
    was_relaxed_ = std::exchange(relaxed_, false);
  }
  /// What those who pass come after.
  const SharedPast& complete() const noexcept { return complete_; }
  /// Some arrival of the phase before released nothing.
  bool was_relaxed() const noexcept { return was_relaxed_; }

 private:
  SharedPast open_, complete_;
  bool relaxed_ = false, was_relaxed_ = false;
};

/// The last access of another block's warp to this block's shared memory.
struct Visit {
  BlockCheck* visitor = nullptr;
  const Warp* warp = nullptr;
  std::uint32_t tick = 0, op = 0;
  int lane = 0;
  LaneTouch touch;
};

/// What a block knows of its cluster.
struct ClusterOrder {
  void clear() { *this = {}; }

  ClusterBarrier barrier;                           ///< of the cluster; used in its first block
  BlockOrder::WarpTicks arrivals{};                 ///< tick of each warp's first; 0: none
  bool has_begun = false;                           ///< some thread passed the barrier
  std::unordered_map<std::uint64_t, Visit> visits;  ///< by block and warp
};

}  // namespace kernwright::sim
