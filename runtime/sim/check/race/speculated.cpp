// Loads that compilers move ahead and may drop: for the race check they are reads of the lanes that
// take the value, at the time of the load.
#include "sim/check/race/speculated.h"

#include "sim/check/block_check.h"
#include "sim/exec/block/cluster.h"
#include "sim/exec/warp/lane_memory.h"

#include <bit>
#include <utility>

namespace kernwright::sim {

using ptx::Space;

void SpeculatedLoads::note(const Op* op, Warp& warp, const CheckedOp& info,
                           const std::uint64_t* address, Space space) {
  const std::uint32_t index = warp.op_index(op);
  const std::uint32_t all = info.bytes < 32 ? (1u << info.bytes) - 1 : ~0u;
  const std::uint32_t read = (info.used != 0 ? info.used : all) & info.wanted;
  const bool was_init =
      std::exchange(check_.init, false);  // which looks at the load as at any other
  Speculated& load = loads_[{warp.frame, index}];
  load.warp = &warp;
  for (std::uint32_t* const set : {&load.lanes, &load.met, &load.closed, &load.pending})
    *set &= ~warp.mask;
  for (std::uint32_t m = warp.mask; m != 0; m &= m - 1) {
    const int lane = std::countr_zero(m);
    const auto i = static_cast<std::size_t>(lane);
    const Space window = space == Space::generic ? window_space(address[i]) : space;
    const std::uint64_t at =
        space == Space::generic && window != Space::global ? address[i] & ~kWindowMask : address[i];
    const bool waits =
        window == Space::global || (window == Space::shared && at >> kRankShift == 0);
    each_run(
        read & ~(waits ? info.speculated : 0), 16, [&](std::uint32_t offset, std::uint32_t bytes) {
          check_.lanes.touch(op, warp, lane, AccessKind::read, address[i] + offset, bytes, space);
        });
    if (!waits || address[i] % info.bytes != 0) continue;
    load.lanes |= 1u << lane;
    load.stamp[i] = check_.order.stamp;
    load.address[i] = at;
    load.space[i] = window;
    look_again(load, index, lane);
  }
  check_.init = was_init;
  any = true;
}

/// Checks the shadows of a lane's load for a racing write, until one is found.
void SpeculatedLoads::look_again(Speculated& load, std::uint32_t index, int lane) {
  if ((load.pending >> lane & 1) != 0) return;
  check_.races.looking = &load;
  examine(load, index, lane);
  check_.races.looking = nullptr;
}

void SpeculatedLoads::examine(Speculated& load, std::uint32_t index, int lane) {
  const auto i = static_cast<std::size_t>(lane);
  const Shadow now = std::exchange(check_.order.stamp, load.stamp[i]);
  const bool was_init = std::exchange(check_.init, false);
  each_run(check_.ops[index].speculated, 16, [&](std::uint32_t offset, std::uint32_t bytes) {
    check_.lanes.touch(load.warp->code + index, *load.warp, lane, AccessKind::read,
                       load.address[i] + offset, bytes, load.space[i]);
  });
  check_.order.stamp = now;
  check_.init = was_init;
}

void SpeculatedLoads::look(const Warp* warp) {
  bool some = false;
  for (auto& [key, load] : loads_) {
    if (warp == nullptr || load.warp == warp) {
      std::uint32_t& seen = warp == nullptr ? load.closed : load.met;
      for (std::uint32_t m = load.lanes & ~seen; m != 0; m &= m - 1) {
        const int lane = std::countr_zero(m);
        look_again(load, key.second, lane);
        // No other thread can still race on this memory.
        const bool is_over = warp == nullptr && (load.pending >> lane & 1) == 0 &&
                             load.space[static_cast<std::size_t>(lane)] == Space::shared;
        if (is_over) load.lanes &= ~(1u << lane);
      }
      seen |= load.lanes;
    }
    some |= load.lanes != 0;
  }
  any = some;
}

void SpeculatedLoads::take(const Op* op, Warp& warp) {
  for (const ValueUse& use : check_.where.launch.program.uses.at(warp.op_index(op))) {
    const auto known = loads_.find({warp.frame, use.load});
    if (known == loads_.end() || (use.bytes & check_.ops[use.load].speculated) == 0) continue;
    Speculated& load = known->second;
    std::uint32_t lanes = load.lanes & warp.mask;
    if (use.lanes == UsingLanes::where) lanes &= warp.pred(op->c);
    if (use.lanes == UsingLanes::where_not) lanes &= ~warp.pred(op->c);
    load.lanes &= ~lanes;
    for (; lanes != 0; lanes &= lanes - 1) take_lane(load, use.load, std::countr_zero(lanes));
  }
}

/// The lane really uses the loaded value.
void SpeculatedLoads::take_lane(Speculated& load, std::uint32_t index, int lane) {
  look_again(load, index, lane);
  const auto i = static_cast<std::size_t>(lane);
  if ((load.pending >> lane & 1) != 0) {
    const LaneTouch touch{AccessKind::read, load.space[i], load.address[i],
                          check_.ops[index].bytes};
    WordAccess access = check_.races.get_access(load.warp->code + index, *load.warp, lane, touch);
    access.begin = load.address[i] & ~std::uint64_t{3};
    access.is_late = get_tick(load.other[i]) >= get_tick(load.stamp[i]);
    const Missing missing = is_under_way(load.other[i]) ? Missing::wait : Missing::order;
    return check_.races.report(access, load.other[i], true, missing);
  }
  if ((load.closed >> lane & 1) != 0 && load.space[i] == Space::shared) return;
  check_.races.taking = true;
  examine(load, index, lane);
  check_.races.taking = false;
}

}  // namespace kernwright::sim
