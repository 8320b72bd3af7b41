// What orders accesses: meetings of lanes, barriers, fences with atomics.
#include "sim/check/block_check.h"
#include "sim/code/program.h"
#include "sim/exec/cluster.h"
#include "sim/exec/scheduler.h"

#include <algorithm>
#include <bit>

namespace kernwright::sim {
namespace {

constexpr std::uint64_t kNowhere = ~std::uint64_t{0};  ///< no aligned address
constexpr std::uint64_t kFenceCost = 1000;             ///< see Warp::charge()

}  // namespace

std::uint32_t* BlockCheck::lane_row(std::uint32_t warp, int lane) {
  std::unique_ptr<LaneMatrix>& matrix = lane_known_[warp];
  if (matrix == nullptr) matrix = std::make_unique<LaneMatrix>();
  return (*matrix)[static_cast<std::size_t>(lane)].data();
}

void BlockCheck::meet(const Op* op, Warp& warp, const std::uint32_t* members) {
  if (sync && members != nullptr) check_members(op, warp, members);
  if (!race) return;
  if (speculating) [[unlikely]]
    look_at_speculated(&warp);
  new_tick();
  const std::uint32_t w = warp.index;
  std::uint32_t rest = warp.mask;
  while (rest != 0) {
    const std::uint32_t named = members == nullptr ? kAllLanes : members[std::countr_zero(rest)];
    const std::uint32_t group = (named & (warp.mask | warp.met_elsewhere)) | (rest & (0u - rest));
    rest &= ~group;
    if ((group & warp.live) == warp.live) {
      warp_floor_[w] = tick_;
      continue;
    }
    std::array<std::uint32_t, kLanes> joined{};
    for (std::uint32_t m = group; m != 0; m &= m - 1) {
      const std::uint32_t* const row = lane_row(w, std::countr_zero(m));
      for (std::size_t i = 0; i < joined.size(); ++i) joined[i] = std::max(joined[i], row[i]);
    }
    for (std::uint32_t m = group; m != 0; m &= m - 1) {
      joined[static_cast<std::size_t>(std::countr_zero(m))] = tick_;
    }
    for (std::uint32_t m = group; m != 0; m &= m - 1) {
      std::copy(joined.begin(), joined.end(), lane_row(w, std::countr_zero(m)));
    }
  }
}

SharedPast BlockCheck::snapshot(std::uint32_t warp) const {
  auto mine = std::make_shared<Past>();
  BlockPast& own = (*mine)[block_];
  own.floor = tick_of(floor);
  own.places = known_[warp];
  own.places[warp] = tick_;
  return join(past_[warp], mine);
}

void BlockCheck::absorb(const Warp& warp, std::uint32_t lanes, const SharedPast& past) {
  if (past == nullptr) return;
  const std::uint32_t w = warp.index;
  past_[w] = join(past_[w], past);
  const auto own = past->find(block_);
  if (own == past->end()) return;
  for (std::uint32_t other = 0; other < kPlaces; ++other) {
    const std::uint32_t base = other < kProxied ? own->second.floor : 0;
    const std::uint32_t tick = std::max(base, own->second.places[other]);
    if (other != w) {
      known_[w][other] = std::max(known_[w][other], tick);
      continue;
    }
    for (std::uint32_t m = lanes; m != 0; m &= m - 1) {
      std::uint32_t* const row = lane_row(w, std::countr_zero(m));
      for (int lane = 0; lane < kLanes; ++lane) row[lane] = std::max(row[lane], tick);
    }
  }
}

/// A synchronisation variable as this block sees it within `reach`; shared memory is told apart by
/// block.
CheckedLaunch::Variable BlockCheck::variable_of(std::uint64_t address, ptx::Space space,
                                                std::size_t reach) const {
  std::uint64_t variable = address & ~std::uint64_t{3};
  if (space == ptx::Space::shared) {
    const std::uint64_t tag = address >> kRankShift & kRankMask;
    const BlockCheck* const owner = tag == 0 ? this : peer(tag - 1);
    const std::uint64_t block = owner == nullptr ? block_ : owner->block_;
    variable = std::uint64_t{1} << 63 | block << kRankShift | (address & 0xfffffc);
  }
  switch (static_cast<Reach>(reach)) {
    case Reach::block:
      return {variable, std::uint64_t{block_} + 1};
    case Reach::cluster:
      return {variable, std::uint64_t{1} << 63 | cluster_of(block_)};
    default:
      return {variable, 0};
  }
}

std::uint32_t BlockCheck::cluster_of(std::uint32_t block) const {
  const auto& [x, y, z] = cluster_shape_;
  if (x == 0) return block;
  const std::uint32_t width = grid_shape_[0], height = grid_shape_[1];
  const std::uint32_t cx = block % width / x, cy = block / width % height / y;
  const std::uint32_t cz = block / width / height / z;
  return cx + width / x * (cy + height / y * cz);
}

/// How far an operation must reach from here to meet one of that block.
Reach BlockCheck::reach_to(std::uint32_t block) const {
  if (block == block_) return Reach::block;
  return cluster_of(block) == cluster_of(block_) ? Reach::cluster : Reach::device;
}

/// What the warp's fences of at least that reach released.
SharedPast BlockCheck::fenced(std::uint32_t warp, Reach reach) const {
  SharedPast past;
  for (auto r = static_cast<std::size_t>(reach); r < kReaches; ++r) {
    past = join(past, fenced_[warp][r]);
  }
  return past;
}

void BlockCheck::fence(Warp& warp, Reach reach) {
  if (!race || !parts) return;
  warp.charge(kFenceCost);
  new_tick();
  const std::uint32_t w = warp.index;
  each_reach(reach, [&](std::size_t r) {
    absorb(warp, warp.mask, pending_[w][r]);
    pending_[w][r] = nullptr;
  });
  const SharedPast past = snapshot(w);
  each_reach(reach, [&](std::size_t r) { fenced_[w][r] = past; });
}

void BlockCheck::publish(const Warp& warp, const std::uint64_t* addresses, ptx::Space space,
                         const CheckedOp& op) {
  PastByReach& fenced = fenced_[warp.index];
  if (op.release) {
    new_tick();
    const SharedPast past = snapshot(warp.index);
    each_reach(op.reach, [&](std::size_t r) { fenced[r] = past; });
  }
  std::uint64_t last = kNowhere;
  for (std::uint32_t m = warp.mask; m != 0; m &= m - 1) {
    const std::uint64_t address = addresses[std::countr_zero(m)] & ~std::uint64_t{3};
    if (address == last) continue;
    last = address;
    each_reach(op.reach, [&](std::size_t r) {
      if (fenced[r] != nullptr) launch_.publish(variable_of(address, space, r), fenced[r]);
    });
  }
}

void BlockCheck::observe(const Warp& warp, const std::uint64_t* addresses, ptx::Space space,
                         const CheckedOp& op) {
  PastByReach& pending = pending_[warp.index];
  std::uint64_t last = kNowhere;
  for (std::uint32_t m = warp.mask; m != 0; m &= m - 1) {
    const std::uint64_t address = addresses[std::countr_zero(m)] & ~std::uint64_t{3};
    if (address == last) continue;
    last = address;
    each_reach(op.reach, [&](std::size_t r) {
      const SharedPast past = launch_.published(variable_of(address, space, r));
      if (op.acquire) {
        absorb(warp, warp.mask, past);
      } else {
        pending[r] = join(pending[r], past);
      }
    });
  }
}

void BlockCheck::arrive(const Op* op, Warp& warp, std::uint32_t id, std::uint32_t group, bool wait,
                        bool counted) {
  ArrivalState& state = arrivals_[id];
  const auto thread = warp.thread(std::countr_zero(group));
  const std::uint32_t here = warp.op_index(op);
  if (!state.open) {
    state.open = true;
    state.first_op = here;
    state.first_thread = thread;
  } else if (sync && wait && !counted && id == 0 && here != state.first_op) {
    report_divergence(op, warp, std::countr_zero(group), state.first_op, state.first_thread);
  }
  // Barrier 0 is what __syncthreads() names: that has to be one place for all. Whoever numbers
  // barriers means the number, and branches of warps that specialise meet there; lanes of a warp
  // may not.
  if (sync && wait && !counted && id != 0) {
    const auto& schedule = *warp.schedule;
    for (std::uint32_t i = 0; i < schedule.count; ++i) {
      const Split& other = schedule.splits[i];
      if (other.state != SplitState::barrier || other.barrier != id || other.pc == here) continue;
      report_divergence(op, warp, std::countr_zero(group), other.pc,
                        warp.thread(std::countr_zero(other.mask)));
    }
  }
  if (wait || !race) return;
  new_tick();
  state.tick[warp.index] = tick_;
}

void BlockCheck::release(const Block& block, std::uint32_t id, const Barriers::One& barrier) {
  ArrivalState& state = arrivals_[id];
  state.open = false;
  if (!race) return;
  if (speculating) [[unlikely]]
    look_at_speculated(nullptr);
  new_tick();
  std::array<std::uint32_t, kMostWarps> waiting{};
  bool everybody = true;
  for (std::uint32_t w = 0; w < warps_; ++w) {
    const Warp::Schedule& schedule = *block.warps[w].schedule;
    for (std::uint32_t s = 0; s < schedule.count; ++s) {
      const Split& split = schedule.splits[s];
      if (split.state == SplitState::barrier && split.barrier == id) waiting[w] |= split.mask;
    }
    const std::uint32_t live = block.warps[w].live;
    everybody &= (waiting[w] & live) == live && (live != 0 || barrier.threads == 0);
  }
  if (everybody) {
    floor = stamp;
    if (!parts) return begin_phase();
  }
  Known joined{};
  SharedPast past;
  for (std::uint32_t w = 0; w < warps_; ++w) {
    if (barrier.arrived[w] == 0) continue;
    joined.join(known_[w]);
    joined[w] = std::max(joined[w], waiting[w] != 0 ? tick_ : state.tick[w]);
    past = join(past, past_[w]);
  }
  for (std::uint32_t w = 0; w < warps_; ++w) {
    if (waiting[w] == 0) continue;
    known_[w].join(joined);
    past_[w] = past;
    if ((waiting[w] & block.warps[w].live) == block.warps[w].live) warp_floor_[w] = tick_;
  }
}

}  // namespace kernwright::sim
