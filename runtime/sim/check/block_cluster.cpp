// Blocks of a cluster: their barrier, and who uses whose shared memory.
#include "sim/check/block_check.h"
#include "sim/exec/cluster.h"
#include "sim/exec/scheduler.h"

#include <algorithm>

namespace kernwright::sim {

BlockCheck* BlockCheck::peer(std::uint64_t rank) const {
  const auto& members = in_->member->cluster->members;
  if (rank >= members.size() || members[rank]->exited) return nullptr;
  return members[rank]->block->warps[0].worker->check;
}

BlockCheck& BlockCheck::first_of_cluster() const {
  return *in_->member->cluster->members[0]->block->warps[0].worker->check;
}

void BlockCheck::arrive_at_cluster(const Warp& warp, bool release) {
  if (!race || !parts) return;
  BlockCheck& keeper = first_of_cluster();
  if (!release) {
    keeper.cluster_relaxed_ = true;
    keeper.cluster_open_ = join(keeper.cluster_open_, fenced(warp.index, Reach::cluster));
    return;
  }
  new_tick();
  keeper.cluster_open_ = join(keeper.cluster_open_, snapshot(warp.index));
}

void BlockCheck::end_cluster_phase() {
  cluster_complete_ = join(cluster_complete_, std::exchange(cluster_open_, nullptr));
  cluster_was_relaxed_ = std::exchange(cluster_relaxed_, false);
}

void BlockCheck::pass_cluster(const Warp& warp, std::uint32_t lanes) {
  if (!race || !parts) return;
  cluster_has_begun_ = true;
  new_tick();
  absorb(warp, lanes, first_of_cluster().cluster_complete_);
}

void BlockCheck::pass_cluster_together() {
  if (!race || !parts || first_of_cluster().cluster_was_relaxed_) return;
  new_tick();
  floor = stamp;
  warp_floor_.fill(tick_);
}

void BlockCheck::visit(const Op* op, Warp& warp, int lane, const LaneTouch& touch) {
  BlockCheck& owner = *touch.owner;
  Visit& last = owner.visits_[std::uint64_t{block_} * kMostWarps + warp.index];
  last = {this, &warp, tick_, warp.op_index(op), lane, touch};
  last.touch.addresses = nullptr;
  const SharedPast& past = past_[warp.index];
  if (cluster_has_begun_) return;
  if (past == nullptr || !past->contains(owner.block_)) report_visit(last, owner, false);
}

void BlockCheck::end() {
  if (!race) return;
  for (const auto& [number, visit] : visits_) {
    const auto block = static_cast<std::uint32_t>(number / kMostWarps);
    const auto warp = static_cast<std::uint32_t>(number % kMostWarps);
    const bool known = std::any_of(past_.begin(), past_.end(), [&](const SharedPast& past) {
      if (past == nullptr) return false;
      const auto there = past->find(block);
      return there != past->end() && there->second.covers(visit.tick, warp);
    });
    if (!known) visit.visitor->report_visit(visit, *this, true);
  }
}

}  // namespace kernwright::sim
