// Arrivals at the barriers of a block, with their places.
#pragma once

#include "sim/check/order/block_order.h"
#include "sim/check/report/block_findings.h"
#include "sim/exec/block/barriers.h"

#include <array>
#include <cstdint>

namespace kernwright::sim {

class BarrierArrivals {
 public:
  explicit BarrierArrivals(BlockFindings& findings) : findings_(findings) {}

  void clear() { all_.fill({}); }
  /// Lanes arrive at a barrier. `judged`: to wait, all of the block for each other.
  void arrive(const Op* op, const Warp& warp, std::uint32_t id, std::uint32_t lanes, bool judged);
  void release(std::uint32_t id) { all_[id].open = false; }
  /// Ticks of arrivals by warps that did not wait.
  BlockOrder::WarpTicks& ticks(std::uint32_t id) { return all_[id].ticks; }

 private:
  struct One {
    BlockOrder::WarpTicks ticks{};
    std::uint32_t first_op = 0, first_thread = 0;
    bool open = false;
  };

  void look_for_divergence(const Op* op, const Warp& warp, std::uint32_t id, std::uint32_t lanes);

  BlockFindings& findings_;
  std::array<One, kBarrierCount> all_;
};

}  // namespace kernwright::sim
