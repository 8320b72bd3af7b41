// Blocks of a cluster: their barrier, and who uses whose shared memory.
#include "sim/check/block_check.h"
#include "sim/exec/cluster.h"
#include "sim/exec/scheduler.h"

#include <algorithm>

namespace kernwright::sim {

BlockCheck* BlockCheck::peer(std::uint64_t rank) const {
  const auto& members = in_->member->cluster->members;
  if (rank >= members.size() || members[rank]->exited) return nullptr;
  return &of(members[rank]->block->warps[0]);
}

BlockCheck& BlockCheck::first_of_cluster() const {
  return of(in_->member->cluster->members[0]->block->warps[0]);
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
  std::uint32_t& arrival = cluster_arrivals_[warp.index];
  if (arrival == 0) arrival = tick_;
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

void BlockCheck::end_cluster_arrivals(bool all_wait) {
  const auto arrivals = std::exchange(cluster_arrivals_, {});
  if (!race || !parts || !all_wait || first_of_cluster().cluster_was_relaxed_) return;
  new_tick();
  std::uint32_t earliest = tick_;
  for (std::uint32_t w = 0; w < warps_; ++w) {
    if (in_->warps[w].live != 0) {
      earliest = std::min(earliest, arrivals[w]);
      warp_floor_[w] = std::max(warp_floor_[w], arrivals[w]);
    } else {
      for (Known& known : known_) known[w] = tick_;
    }
  }
  floor = std::max(floor, Cell{earliest} << kTickShift);
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
  for (const auto& entry : visits_) {
    const auto number = entry.first;
    const auto& visit = entry.second;  // clang 14 captures no names of a structured binding
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
