// What the checks do where threads meet: time goes on, and what has to be looked at before is.
#include "sim/check/block_check.h"
#include "sim/exec/warp/scheduler.h"

#include <bit>

namespace kernwright::sim {
namespace {

constexpr std::uint64_t kFenceCost = 1000;  ///< see Warp::charge()

}  // namespace

void BlockCheck::new_tick() {
  if (loads.any && parts) [[unlikely]]
    loads.look(nullptr);
  shared.new_epoch();
  if (!order.advance()) race = false;
}

void BlockCheck::meet(const Op* op, Warp& warp, const std::uint32_t* members) {
  if (sync && members != nullptr) findings.members(op, warp, members);
  if (!race) return;
  if (loads.any) [[unlikely]]
    loads.look(&warp);
  new_tick();
  order.meet(warp, members);
}

void BlockCheck::fence(Warp& warp, Reach reach) {
  if (!race || !parts) return;
  warp.charge(kFenceCost);
  new_tick();
  order.fence(warp, reach);
}

void BlockCheck::fence_proxy(const Warp& warp) {
  if (!race) return;
  new_tick();
  order.fence_proxy(warp);
}

void BlockCheck::publish(const Warp& warp, const std::uint64_t* addresses, ptx::Space space,
                         const CheckedOp& op) {
  if (op.release) new_tick();
  order.publish(warp, addresses, space, op);
}

void BlockCheck::arrive(const Op* op, Warp& warp, std::uint32_t id, std::uint32_t lanes, bool wait,
                        bool counted) {
  ArrivalState& state = arrivals_[id];
  const auto thread = warp.thread(std::countr_zero(lanes));
  const std::uint32_t here = warp.op_index(op);
  if (!state.open) {
    state.open = true;
    state.first_op = here;
    state.first_thread = thread;
  } else if (sync && wait && !counted && id == 0 && here != state.first_op) {
    findings.divergence(op, warp, std::countr_zero(lanes), state.first_op, state.first_thread);
  }
  if (sync && wait && !counted && id != 0) look_for_divergence(op, warp, id, lanes);
  if (wait || !race) return;
  new_tick();
  state.tick[warp.index] = order.tick();
}

/// Barrier 0 is what __syncthreads() names: that has to be one place for all. Whoever numbers
/// barriers means the number, and branches of warps that specialise meet there; lanes of a warp may
/// not.
void BlockCheck::look_for_divergence(const Op* op, const Warp& warp, std::uint32_t id,
                                     std::uint32_t lanes) {
  const auto& schedule = *warp.schedule;
  for (std::uint32_t i = 0; i < schedule.count; ++i) {
    const Split& other = schedule.splits[i];
    if (other.state != SplitState::barrier || other.barrier != id || other.pc == warp.op_index(op))
      continue;
    findings.divergence(op, warp, std::countr_zero(lanes), other.pc,
                        warp.thread(std::countr_zero(other.mask)));
  }
}

void BlockCheck::release(const Block& block, std::uint32_t id, const Barriers::One& barrier) {
  ArrivalState& state = arrivals_[id];
  state.open = false;
  if (!race) return;
  if (loads.any) [[unlikely]]
    loads.look(nullptr);
  new_tick();
  if (order.release(block, id, barrier, state.tick) && !parts) shared.begin_phase();
}

}  // namespace kernwright::sim
