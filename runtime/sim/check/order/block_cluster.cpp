// Blocks of a cluster: their barrier, and who uses whose shared memory.
#include "sim/check/block_check.h"
#include "sim/exec/block/cluster.h"
#include "sim/exec/warp/scheduler.h"

#include <algorithm>

namespace kernwright::sim {

BlockCheck* BlockCheck::peer(std::uint64_t rank) const {
  const auto& members = where.in->member->cluster->members;
  if (rank >= members.size() || members[rank]->exited) return nullptr;
  return &of(members[rank]->block->warps[0]);
}

BlockCheck& BlockCheck::first_of_cluster() const {
  return of(where.in->member->cluster->members[0]->block->warps[0]);
}

void BlockCheck::arrive_at_cluster(const Warp& warp, bool release) {
  if (!race || !parts) return;
  BlockCheck& keeper = first_of_cluster();
  if (!release) {
    return keeper.cluster_.barrier.arrive(order.fenced(warp.index, Reach::cluster), true);
  }
  new_tick();
  std::uint32_t& arrival = cluster_.arrivals[warp.index];
  if (arrival == 0) arrival = order.tick();
  keeper.cluster_.barrier.arrive(order.snapshot(warp.index), false);
}

void BlockCheck::end_cluster_phase() { cluster_.barrier.end_phase(); }

void BlockCheck::pass_cluster(const Warp& warp, std::uint32_t lanes) {
  if (!race || !parts) return;
  cluster_.has_begun = true;
  new_tick();
  order.absorb(warp, lanes, first_of_cluster().cluster_.barrier.complete());
}

void BlockCheck::end_cluster_arrivals(bool all_wait) {
  const auto arrivals = std::exchange(cluster_.arrivals, {});
  if (!race || !parts || !all_wait || first_of_cluster().cluster_.barrier.was_relaxed()) return;
  new_tick();
  order.end_cluster_arrivals(arrivals);
}

void BlockCheck::visit(const Op* op, Warp& warp, int lane, const LaneTouch& touch) {
  BlockCheck& owner = *touch.owner;
  Visit& last = owner.cluster_.visits[std::uint64_t{where.block} * kMostWarps + warp.index];
  last = {this, &warp, order.tick(), warp.op_index(op), lane, touch};
  last.touch.addresses = nullptr;
  if (cluster_.has_begun) return;
  if (order.past_of(warp.index, owner.where.block) == nullptr) report_stray(last, owner, false);
}

/// The visitor's: an access to shared memory of a block that may not have begun, or may be over.
void BlockCheck::report_stray(const Visit& visit, const BlockCheck& owner, bool begun) {
  findings.stray({*visit.warp, visit.op, visit.lane, visit.touch, owner.where.ctaid, begun});
}

void BlockCheck::end() {
  if (!race) return;
  for (const auto& entry : cluster_.visits) {
    const auto number = entry.first;
    const auto& visit = entry.second;  // clang 14 captures no names of a structured binding
    const auto block = static_cast<std::uint32_t>(number / kMostWarps);
    const auto warp = static_cast<std::uint32_t>(number % kMostWarps);
    if (!order.is_known(block, warp, visit.tick)) visit.visitor->report_stray(visit, *this, true);
  }
}

}  // namespace kernwright::sim
