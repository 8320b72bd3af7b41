// Blocks that run side by side: their shared memory, their barrier, their asynchronous copies.
#include "sim/exec/block/cluster.h"

#include "base/format.h"
#include "sim/exec/warp/scheduler.h"
#include "sim/exec/watcher.h"

#include <bit>
#include <utility>

namespace kernwright::sim {
namespace {

/// Calls f(split) for each split of the block in `state`.
template <typename F>
void each_split(const Block& block, SplitState state, F f) {
  for (std::uint32_t w = 0; w < block.warp_count; ++w) {
    Warp::Schedule& schedule = *block.warps[w].schedule;
    for (std::uint32_t s = 0; s < schedule.count; ++s) {
      if (schedule.splits[s].state == state) f(block.warps[w], schedule.splits[s]);
    }
  }
}

bool all_arrived(const ClusterMember& member) {
  for (std::uint32_t w = 0; w < member.block->warp_count; ++w) {
    if ((member.block->warps[w].live & ~member.arrived[w]) != 0) return false;
  }
  return true;
}

/// "block (1, 0, 0), rank 1 of the cluster"
std::string member_name(const ClusterMember& member) {
  const auto& [x, y, z] = member.block->ctaid;
  return format("block ({}, {}, {}), rank {} of the cluster", x, y, z, member.rank);
}

/// All live threads do, none has gone on.
bool everybody_waits(const ClusterMember& member) {
  std::vector<std::uint32_t> waiting(member.block->warp_count);
  each_split(*member.block, SplitState::cluster,
             [&](const Warp& warp, const Split& split) { waiting[warp.index] |= split.mask; });
  for (std::uint32_t w = 0; w < member.block->warp_count; ++w) {
    if ((member.block->warps[w].live & ~waiting[w]) != 0) return false;
  }
  return true;
}

}  // namespace

bool Cluster::release() {
  bool any = false;
  for (const ClusterMember* member : members) {
    if (member->exited) continue;
    if (!all_arrived(*member)) return false;
    for (const std::uint32_t lanes : member->arrived) any |= lanes != 0;
  }
  if (!any) return false;
  if (Watcher* const check = members[0]->block->warps[0].worker->check; check != nullptr) {
    check->end_cluster_phase();
  }
  for (ClusterMember* member : members) {
    if (member->exited) continue;
    Watcher* const check = member->block->warps[0].worker->check;
    if (check != nullptr) check->end_cluster_arrivals(everybody_waits(*member));
    for (std::size_t w = 0; w < member->arrived.size(); ++w) {
      member->passed[w] |= std::exchange(member->arrived[w], 0);
    }
    each_split(*member->block, SplitState::cluster, [&](const Warp& warp, Split& split) {
      if (check != nullptr) check->pass_cluster(warp, split.mask);
      member->passed[warp.index] &= ~split.mask;
      split.state = SplitState::ready;
      ++split.pc;
    });
  }
  return true;
}

void ClusterMember::reset(std::uint32_t warps) {
  exited = false;
  arrived.assign(warps, 0);
  passed.assign(warps, 0);
  seen_phases = cluster->phases;
  busy_rounds = 0;
}

bool ClusterMember::end_waits(bool give_up) {
  bool any = false;
  each_split(*block, SplitState::mbarrier, [&](const Warp&, Split& split) {
    split.state = SplitState::ready;
    split.gives_up |= give_up;
    any = true;
  });
  return any;
}

bool ClusterMember::wake() {
  if (seen_phases == cluster->phases) return false;
  seen_phases = cluster->phases;
  return end_waits(false);
}

std::byte* cluster_address(const Block& block, std::uint64_t address, std::uint64_t bytes,
                           std::string* why) {
  const ClusterMember& caller = *block.member;
  const auto& members = caller.cluster->members;
  const std::uint64_t tag = address >> kRankShift & kRankMask;
  const std::uint64_t offset = address & kOffsetMask;
  const std::uint64_t rank = tag == 0 ? caller.rank : tag - 1;
  const bool exists = rank < members.size() && address >> kRankShift <= kRankMask;
  if (exists && !members[rank]->exited) {
    const Warp& owner = members[rank]->block->warps[0];
    if (offset <= owner.shared_bytes && bytes <= owner.shared_bytes - offset)
      return owner.shared + offset;
    const std::uint64_t before = kOffsetMask + 1 - offset;  // of what the next rank has
    if (why != nullptr && rank + 1 < members.size() && before <= offset) {
      *why = format("it is {} bytes before that of {}", before, member_name(*members[rank + 1]));
      return nullptr;
    }
    if (why != nullptr)
      *why = format("offset {} is out of bounds of the {} bytes of {}", offset, owner.shared_bytes,
                    member_name(*members[rank]));
    return nullptr;
  }
  if (why != nullptr) {
    *why = exists ? format("it belongs to {}, all of whose threads have exited",
                           member_name(*members[rank]))
                  : format("there is no block of rank {} in a cluster of {}", rank, members.size());
  }
  return nullptr;
}

std::string other_block_at(const Block& block, std::uint64_t address) {
  const auto& members = block.member->cluster->members;
  const std::uint64_t tag = address >> kRankShift;
  return tag == 0 || tag > members.size() || members.size() == 1 ? std::string()
                                                                 : member_name(*members[tag - 1]);
}

const Op* report_rank(const Op* op, Warp& warp, int lane, std::uint32_t rank) {
  const std::size_t blocks = warp.block->member->cluster->members.size();
  return warp.fault(op, FaultKind::sync, lane, 0, 0,
                    format("mapa: there is no block of rank {} in a cluster of {}{}", rank, blocks,
                           blocks == 1 ? ", which is what a launch without clusters has" : ""));
}

const Op* cluster_arrive(const Op* op, Warp& warp) {
  ClusterMember& member = *warp.block->member;
  const std::uint32_t twice = (member.arrived[warp.index] | member.passed[warp.index]) & warp.mask;
  if (twice != 0) {
    return warp.fault(op, FaultKind::sync, std::countr_zero(twice), 0, 0,
                      "barrier.cluster.arrive again without a barrier.cluster.wait in between");
  }
  member.arrived[warp.index] |= warp.mask;
  return op + 1;
}

const Op* cluster_wait(const Op* op, Warp& warp) {
  ClusterMember& member = *warp.block->member;
  std::uint32_t& passed = member.passed[warp.index];
  const std::uint32_t never = warp.mask & ~(passed | member.arrived[warp.index]);
  if (never != 0) {
    return warp.fault(op, FaultKind::sync, std::countr_zero(never), 0, 0,
                      "barrier.cluster.wait without a barrier.cluster.arrive before it");
  }
  const std::uint32_t through = passed & warp.mask;
  if (Watcher* const check = warp.worker->check; check != nullptr && through != 0) {
    check->pass_cluster(warp, through);
  }
  if ((warp.mask & ~passed) == 0) {
    passed &= ~warp.mask;
    return op + 1;
  }
  Warp::Schedule& schedule = *warp.schedule;
  passed &= ~through;
  if (through != 0) schedule.fork(warp, through, warp.op_index(op) + 1);
  schedule.current().mask = warp.mask & ~through;
  schedule.park(warp, op, SplitState::cluster);
  return nullptr;
}

bool mbarrier_gives_up(const Op* op, Warp& warp) {
  if (std::exchange(warp.schedule->current().gives_up, false)) return true;
  warp.schedule->park(warp, op, SplitState::mbarrier);
  return false;
}

}  // namespace kernwright::sim
