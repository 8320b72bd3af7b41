// Arrival and release at block barriers.
#include "sim/exec/block/barriers.h"

#include "base/format.h"
#include "sim/code/program.h"
#include "sim/exec/warp/scheduler.h"
#include "sim/exec/watcher.h"

#include <bit>

namespace kernwright::sim {
namespace {

bool is_complete(const Barriers::One& barrier, const Block& block) {
  std::uint64_t count = 0;
  for (std::uint32_t w = 0; w < block.warp_count; ++w) {
    const std::uint32_t live = block.warps[w].live, arrived = barrier.arrived[w];
    const bool whole = (arrived & live) == live;
    if (barrier.threads == 0) {
      if (!whole) return false;
    } else if (arrived != 0) {
      count += whole ? 32u : static_cast<std::uint32_t>(std::popcount(arrived));
    }
  }
  return count >= barrier.threads;
}

struct Tally {
  std::uint32_t arrived = 0, votes = 0;
};

Tally tally(const Barriers::One& barrier) {
  Tally sum;
  for (std::size_t w = 0; w < barrier.arrived.size(); ++w) {
    sum.arrived += static_cast<std::uint32_t>(std::popcount(barrier.arrived[w]));
    sum.votes += static_cast<std::uint32_t>(std::popcount(barrier.votes[w] & barrier.arrived[w]));
  }
  return sum;
}

/// Writes the result of bar.red for the lanes of `split`.
void write_result(const Op& op, const Split& split, const Tally& sum) {
  const auto kind = static_cast<Reduction>(op.flags);
  if (kind == Reduction::none) return;
  if (kind == Reduction::count) {
    auto* d = reinterpret_cast<std::uint32_t*>(split.frame + op.d);
    for (std::uint32_t m = split.mask; m != 0; m &= m - 1) d[std::countr_zero(m)] = sum.votes;
    return;
  }
  const bool holds = kind == Reduction::all ? sum.votes == sum.arrived : sum.votes != 0;
  auto& d = *reinterpret_cast<std::uint32_t*>(split.frame + op.d);
  d = holds ? d | split.mask : d & ~split.mask;
}

/// Whether an active lane's value is not `common`. NOTE: lane_mask is kept for masked code only.
bool differs(const Warp& warp, const std::uint32_t* values, std::uint32_t common) {
  std::uint32_t different = 0;
  if (warp.mask == kAllLanes) {
    for (int i = 0; i < kLanes; ++i) different |= values[i] ^ common;
  } else {
    const std::uint32_t* const on = warp.lane_mask.data();
    for (int i = 0; i < kLanes; ++i) different |= (values[i] ^ common) & on[i];
  }
  return different != 0;
}

/// Lanes of `mask` at the same barrier with the same count.
std::uint32_t same_barrier(const Warp::Arrival& arrival, std::uint32_t mask, std::uint32_t id,
                           std::uint32_t threads) {
  std::uint32_t group = 0;
  for (std::uint32_t m = mask; m != 0; m &= m - 1) {
    const int lane = std::countr_zero(m);
    const bool same =
        arrival.id[lane] == id && (arrival.threads == nullptr || arrival.threads[lane] == threads);
    group |= same ? 1u << lane : 0u;
  }
  return group;
}

}  // namespace

void Barriers::reset(std::uint32_t block_warps) {
  const std::uint32_t stale = warps == block_warps ? open : ~0u;
  warps = block_warps;
  open = 0;
  if (stale == 0) return;
  for (std::uint32_t id = 0; id < kBarrierCount; ++id) {
    if ((stale >> id & 1) == 0) continue;
    One& barrier = all[id];
    barrier.arrived.assign(warps, 0);
    barrier.votes.assign(warps, 0);
    barrier.threads = 0;
    barrier.reduces = false;
  }
}

bool Barriers::release(Block& block) {
  bool released = false;
  for (std::uint32_t m = open; m != 0; m &= m - 1) {
    const auto id = static_cast<std::uint32_t>(std::countr_zero(m));
    One& barrier = all[id];
    if (!is_complete(barrier, block)) continue;
    if (Watcher* const check = block.warps[0].worker->check; check != nullptr) {
      check->release(block, id, barrier);
    }
    const Tally sum = barrier.reduces ? tally(barrier) : Tally{};
    for (std::uint32_t w = 0; w < block.warp_count; ++w) {
      Warp::Schedule& schedule = *block.warps[w].schedule;
      for (std::uint32_t s = 0; s < schedule.count; ++s) {
        Split& split = schedule.splits[s];
        if (split.state != SplitState::barrier || split.barrier != id) continue;
        write_result(block.warps[w].program->full[split.pc], split, sum);
        split.state = SplitState::ready;
        ++split.pc;
      }
      barrier.arrived[w] = barrier.votes[w] = 0;
    }
    open &= ~(1u << id);
    barrier.reduces = false;
    released = true;
  }
  return released;
}

const Op* Warp::barrier(const Op* op, const Arrival& arrival) {
  constexpr unsigned kBarrierCost = 16;
  charge(kBarrierCost);
  const int first = std::countr_zero(mask);
  const std::uint32_t id = arrival.id[first];
  const std::uint32_t threads = arrival.threads != nullptr ? arrival.threads[first] : 0;
  if (id >= kBarrierCount) {
    return fault(op, FaultKind::sync, first, 0, 0, format("there is no barrier {}", id));
  }
  if (arrival.threads != nullptr && (threads == 0 || threads % 32 != 0)) {
    return fault(op, FaultKind::sync, first, 0, 0,
                 format("barrier {} for {} threads: the count must be a positive multiple of 32",
                        id, threads));
  }
  const bool differ = differs(*this, arrival.id, id) ||
                      (arrival.threads != nullptr && differs(*this, arrival.threads, threads));
  const std::uint32_t group = differ ? same_barrier(arrival, mask, id, threads) : mask;
  Barriers::One& barrier = block->barriers->all[id];
  Barriers& barriers = *block->barriers;
  const std::uint32_t bit = 1u << id;
  if ((barriers.open & bit) != 0 && barrier.threads != threads) {
    return fault(op, FaultKind::sync, first, 0, 0,
                 format("barrier {} expects {} here and {} elsewhere (0 = all threads)", id,
                        threads, barrier.threads));
  }
  barriers.open |= bit;
  barrier.threads = threads;
  barrier.arrived[index] |= group;
  barrier.votes[index] |= arrival.votes & group;
  barrier.reduces |= arrival.reduce;
  if (worker->check != nullptr) {
    worker->check->arrive(op, *this, id, group, arrival.wait, threads != 0);
  }
  const std::uint32_t here = op_index(op);
  if (group != mask) schedule->fork(*this, mask & ~group, here);
  Split& split = schedule->current();
  split.mask = group;
  split.pc = arrival.wait ? here : here + 1;
  split.state = arrival.wait ? SplitState::barrier : SplitState::ready;
  split.barrier = id;
  split.window = window;
  if (!arrival.wait && group == mask) return op + 1;
  stop = arrival.wait ? Stop::barrier : Stop::reschedule;
  return nullptr;
}

}  // namespace kernwright::sim
