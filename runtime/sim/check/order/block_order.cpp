// Events that order accesses: meetings of lanes, barriers, fences with atomics.
#include "sim/check/order/block_order.h"

#include "sim/exec/block/cluster.h"
#include "sim/exec/warp/scheduler.h"

#include <algorithm>
#include <bit>

namespace kernwright::sim {
namespace {

constexpr std::uint64_t kNowhere = ~std::uint64_t{0};  ///< no aligned address
constexpr std::uint32_t kLastChunk = Ticks::kChunks - 1;

Shadow shadow_at(std::uint32_t tick) { return Shadow{tick} << kTickShift; }

}  // namespace

BlockOrder::BlockOrder(const BlockPlace& place, std::uint32_t warps)
    : launch_floor(shadow_at(place.launch.first_tick)), place_(place), warps_(warps) {
  static_assert(Ticks::kChunks <= 1u << (31 - Ticks::kChunkShift), "kLookCloser is a tick's bit");
}

bool BlockOrder::begin(bool parts) {
  parts_ = parts;
  tick_ = place_.launch.ticks.take(place_.block);
  stamp = floor = first = shadow_at(tick_);
  scattered = false;
  begin_tick_ = tick_;
  warp_floor_.fill(tick_);
  if (parts) {
    for (auto& row : known_) row.fill(0);
    past_.fill(nullptr);
    fenced_.fill({});
    pending_.fill({});
  }
  return tick_ >> Ticks::kChunkShift != kLastChunk;
}

bool BlockOrder::advance() {
  ++tick_;
  const bool has_more =
      tick_ % (1u << Ticks::kChunkShift) != 0 || take_ticks(place_.launch.ticks.take(place_.block));
  stamp = shadow_at(tick_);
  return has_more;
}

/// Goes on with another chunk of ticks.
bool BlockOrder::take_ticks(std::uint32_t next) {
  if (next != tick_) {  // older shadows are looked up one by one
    first = shadow_at(next);
    scattered = true;
  }
  tick_ = next;
  return next >> Ticks::kChunkShift != kLastChunk;
}

bool BlockOrder::is_ordered(Shadow shadow, const Warp& warp, int lane, bool global,
                            bool copied) const {
  const std::uint32_t tick = get_tick(shadow);
  if (is_forgotten(shadow, global)) return true;
  const std::uint32_t thread = get_thread(shadow), w = warp.index;
  const std::uint32_t writer_warp = copied ? kMostWarps + thread : thread / kLanes;
  const std::uint32_t writer_lane = thread % kLanes;
  if (global || place_.clustered) {
    const std::uint32_t owner = place_.owner(shadow);
    if (owner != place_.block) {
      const BlockPast* const known = get_past(w, owner);
      return known != nullptr && known->covers(tick, writer_warp);
    }
  }
  if (tick < get_tick(floor)) return true;
  if (writer_warp != w) return tick < known_[w][writer_warp];
  if (writer_lane == static_cast<std::uint32_t>(lane) || tick < warp_floor_[w]) return true;
  const LaneMatrix* const matrix = lane_known_[w].get();
  return matrix != nullptr && tick < (*matrix)[static_cast<std::size_t>(lane)][writer_lane];
}

bool BlockOrder::is_proxied(Shadow write, const Warp& warp) const {
  const std::uint32_t tick = get_tick(write), owner = place_.owner(write);
  const std::uint32_t proxied = kProxied + get_thread(write) / kLanes;
  if (owner == place_.block) return tick < known_[warp.index][proxied];
  const BlockPast* const known = get_past(warp.index, owner);
  return known != nullptr && tick < known->places[proxied];
}

const BlockPast* BlockOrder::get_past(std::uint32_t warp, std::uint32_t block) const {
  if (past_[warp] == nullptr) return nullptr;
  const auto known = past_[warp]->find(block);
  return known == past_[warp]->end() ? nullptr : &known->second;
}

bool BlockOrder::is_known(std::uint32_t block, std::uint32_t place, std::uint32_t tick) const {
  for (std::uint32_t w = 0; w < kMostWarps; ++w) {
    const BlockPast* const known = get_past(w, block);
    if (known != nullptr && known->covers(tick, place)) return true;
  }
  return false;
}

bool BlockOrder::has_met(std::uint32_t warp, int lane, std::uint32_t tick) const {
  if (tick < warp_floor_[warp]) return true;
  const LaneMatrix* const matrix = lane_known_[warp].get();
  if (matrix == nullptr) return false;
  const auto& row = (*matrix)[static_cast<std::size_t>(lane)];
  return std::any_of(row.begin(), row.end(), [&](std::uint32_t known) { return tick < known; });
}

std::uint32_t* BlockOrder::lane_row(std::uint32_t warp, int lane) {
  std::unique_ptr<LaneMatrix>& matrix = lane_known_[warp];
  if (matrix == nullptr) matrix = std::make_unique<LaneMatrix>();
  return (*matrix)[static_cast<std::size_t>(lane)].data();
}

void BlockOrder::meet(const Warp& warp, const std::uint32_t* members) {
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

SharedPast BlockOrder::snapshot(std::uint32_t warp) const {
  auto made = std::make_shared<Past>();
  BlockPast& local = (*made)[place_.block];
  local.floor = get_tick(floor);
  local.places = known_[warp];
  local.places[warp] = tick_;
  return join(past_[warp], made);
}

SharedPast BlockOrder::fenced(std::uint32_t warp, Reach reach) const {
  SharedPast past;
  for (auto r = static_cast<std::size_t>(reach); r < kReaches; ++r) {
    past = join(past, fenced_[warp][r]);
  }
  return past;
}

void BlockOrder::absorb(const Warp& warp, std::uint32_t lanes, const SharedPast& past) {
  if (past == nullptr) return;
  const std::uint32_t w = warp.index;
  past_[w] = join(past_[w], past);
  const auto local = past->find(place_.block);
  if (local == past->end()) return;
  for (std::uint32_t other = 0; other < kPlaces; ++other) {
    const std::uint32_t base = other < kProxied ? local->second.floor : 0;
    const std::uint32_t tick = std::max(base, local->second.places[other]);
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

void BlockOrder::defer(std::uint32_t warp, const SharedPast& past) {
  each_reach(Reach::device, [&](std::size_t r) {
    SharedPast& pending = pending_[warp][r];
    pending = join(pending, past);
  });
}

/// A synchronisation variable as this block sees it within `reach`; shared memory is told apart by
/// block.
CheckedLaunch::Variable BlockOrder::get_variable(std::uint64_t address, ptx::Space space,
                                                 std::size_t reach) const {
  std::uint64_t variable = address & ~std::uint64_t{3};
  if (space == ptx::Space::shared) {
    const std::uint64_t tag = address >> kRankShift & kRankMask;
    const std::uint64_t block = tag == 0 ? place_.block : place_.block_at(tag - 1);
    variable = std::uint64_t{1} << 63 | block << kRankShift | (address & 0xfffffc);
  }
  switch (static_cast<Reach>(reach)) {
    case Reach::block: return {variable, std::uint64_t{place_.block} + 1};
    case Reach::cluster:
      return {variable, std::uint64_t{1} << 63 | place_.get_cluster(place_.block)};
    default: return {variable, 0};
  }
}

void BlockOrder::fence(const Warp& warp, Reach reach) {
  const std::uint32_t w = warp.index;
  each_reach(reach, [&](std::size_t r) {
    absorb(warp, warp.mask, pending_[w][r]);
    pending_[w][r] = nullptr;
  });
  const SharedPast past = snapshot(w);
  each_reach(reach, [&](std::size_t r) { fenced_[w][r] = past; });
}

void BlockOrder::fence_proxy(const Warp& warp) {
  const std::uint32_t w = warp.index;
  const auto reach = [](Known& places, std::uint32_t from) {
    for (std::uint32_t i = 0; i < kMostWarps; ++i) {
      places[kProxied + i] = std::max({places[kProxied + i], places[i], from});
    }
  };
  reach(known_[w], get_tick(floor));
  known_[w][kProxied + w] = tick_;
  if (past_[w] == nullptr) return;
  auto past = std::make_shared<Past>(*past_[w]);
  for (auto& [block, known] : *past) reach(known.places, known.floor);
  past_[w] = std::move(past);
}

/// Calls f(variable, reach) for the variables of the active lanes.
template <typename F>
void BlockOrder::each_variable(const Warp& warp, const std::uint64_t* addresses, ptx::Space space,
                               Reach reach, F f) const {
  std::uint64_t last = kNowhere;
  for (std::uint32_t m = warp.mask; m != 0; m &= m - 1) {
    const std::uint64_t address = addresses[std::countr_zero(m)] & ~std::uint64_t{3};
    if (address == last) continue;
    last = address;
    each_reach(reach, [&](std::size_t r) { f(get_variable(address, space, r), r); });
  }
}

void BlockOrder::publish(const Warp& warp, const std::uint64_t* addresses, ptx::Space space,
                         const CheckedOp& op) {
  PastByReach& fenced = fenced_[warp.index];
  if (op.release) {
    const SharedPast past = snapshot(warp.index);
    each_reach(op.reach, [&](std::size_t r) { fenced[r] = past; });
  }
  each_variable(warp, addresses, space, op.reach, [&](const auto& variable, std::size_t r) {
    if (fenced[r] != nullptr) place_.launch.publish(variable, fenced[r]);
  });
}

void BlockOrder::observe(const Warp& warp, const std::uint64_t* addresses, ptx::Space space,
                         const CheckedOp& op) {
  PastByReach& pending = pending_[warp.index];
  each_variable(warp, addresses, space, op.reach, [&](const auto& variable, std::size_t r) {
    const SharedPast past = place_.launch.published(variable);
    if (op.acquire) return absorb(warp, warp.mask, past);
    pending[r] = join(pending[r], past);
  });
}

bool BlockOrder::release(const Block& block, std::uint32_t id, const Barriers::One& barrier,
                         const WarpTicks& arrivals) {
  WarpTicks waiting{};  // lanes
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
  if (everybody) floor = stamp;
  if (parts_ || !everybody) join_waiting(barrier, arrivals, block, waiting);
  return everybody;
}

/// Orders the waiting threads after all that arrived.
void BlockOrder::join_waiting(const Barriers::One& barrier, const WarpTicks& arrivals,
                              const Block& block, const WarpTicks& waiting) {
  Known joined{};
  SharedPast past;
  for (std::uint32_t w = 0; w < warps_; ++w) {
    if (barrier.arrived[w] == 0) continue;
    joined.join(known_[w]);
    joined[w] = std::max(joined[w], waiting[w] != 0 ? tick_ : arrivals[w]);
    past = join(past, past_[w]);
  }
  for (std::uint32_t w = 0; w < warps_; ++w) {
    if (waiting[w] == 0) continue;
    known_[w].join(joined);
    past_[w] = past;
    if ((waiting[w] & block.warps[w].live) == block.warps[w].live) warp_floor_[w] = tick_;
  }
}

void BlockOrder::end_cluster_arrivals(const WarpTicks& arrivals) {
  std::uint32_t earliest = tick_;
  for (std::uint32_t w = 0; w < warps_; ++w) {
    if (place_.in->warps[w].live != 0) {
      earliest = std::min(earliest, arrivals[w]);
      warp_floor_[w] = std::max(warp_floor_[w], arrivals[w]);
    } else {
      for (Known& known : known_) known[w] = tick_;
    }
  }
  floor = std::max(floor, shadow_at(earliest));
}

}  // namespace kernwright::sim
