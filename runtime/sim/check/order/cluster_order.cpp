// Blocks of a cluster: their barrier, and uses of each other's shared memory.
#include "sim/check/order/cluster_order.h"

#include "sim/check/block_check.h"
#include "sim/exec/block/cluster.h"

#include <utility>

namespace kernwright::sim {

BlockCheck* BlockCheck::peer(std::uint64_t rank) const {
  const auto& members = where.in->member->cluster->members;
  if (rank >= members.size() || members[rank]->exited) return nullptr;
  return &get(members[rank]->block->warps[0]);
}

ClusterBarrier& ClusterOrder::barrier() const {
  const auto& members = check_.where.in->member->cluster->members;
  return BlockCheck::get(members[0]->block->warps[0]).cluster.barrier_;
}

void ClusterOrder::arrive(const Warp& warp, bool release) {
  if (!check_.race || !check_.parts) return;
  if (!release) return barrier().arrive(check_.order.fenced(warp.index, Reach::cluster), true);
  check_.new_tick();
  std::uint32_t& arrival = arrivals_[warp.index];
  if (arrival == 0) arrival = check_.order.tick();
  barrier().arrive(check_.order.snapshot(warp.index), false);
}

void ClusterOrder::pass(const Warp& warp, std::uint32_t lanes) {
  if (!check_.race || !check_.parts) return;
  has_begun_ = true;
  check_.new_tick();
  check_.order.absorb(warp, lanes, barrier().complete);
}

void ClusterOrder::end_arrivals(bool all_wait) {
  const auto arrivals = std::exchange(arrivals_, {});
  if (!check_.race || !check_.parts || !all_wait || barrier().was_relaxed) return;
  check_.new_tick();
  check_.order.end_cluster_arrivals(arrivals);
}

void ClusterOrder::visit(const Op* op, Warp& warp, int lane, const LaneTouch& touch) {
  BlockCheck& owner = *touch.owner;
  Visit& last = owner.cluster.visits_[std::uint64_t{check_.where.block} * kMostWarps + warp.index];
  last = {&check_, &warp, check_.order.tick(), warp.op_index(op), lane, touch};
  last.touch.addresses = nullptr;
  if (!has_begun_ && check_.order.get_past(warp.index, owner.where.block) == nullptr)
    check_.findings.stray(last, owner.where.ctaid, false);
}

void ClusterOrder::end() {
  if (!check_.race) return;
  for (const auto& entry : visits_) {
    const auto number = entry.first;
    const auto& visit = entry.second;  // clang 14 captures no names of a structured binding
    const auto block = static_cast<std::uint32_t>(number / kMostWarps);
    const auto warp = static_cast<std::uint32_t>(number % kMostWarps);
    if (!check_.order.is_known(block, warp, visit.tick))
      visit.visitor->findings.stray(visit, check_.where.ctaid, true);
  }
}

}  // namespace kernwright::sim
