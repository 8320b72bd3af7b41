// Threads that wait for each other at different places of the program.
#include "sim/check/order/barrier_arrivals.h"

#include "sim/exec/warp/scheduler.h"

#include <bit>

namespace kernwright::sim {

/// Barrier 0 is __syncthreads(): it must be at one place for all.
void BarrierArrivals::arrive(const Op* op, const Warp& warp, std::uint32_t id, std::uint32_t lanes,
                             bool judged) {
  One& one = all_[id];
  const int lane = std::countr_zero(lanes);
  const std::uint32_t here = warp.op_index(op);
  if (!one.open) {
    one.open = true;
    one.first_op = here;
    one.first_thread = warp.thread(lane);
  } else if (judged && id == 0 && here != one.first_op) {
    findings_.divergence(op, warp, lane, one.first_op, one.first_thread);
  }
  if (judged && id != 0) look_for_divergence(op, warp, id, lanes);
}

/// A numbered barrier may be reached at several places, by branches of specialised warps; but not
/// by lanes of the same warp.
void BarrierArrivals::look_for_divergence(const Op* op, const Warp& warp, std::uint32_t id,
                                          std::uint32_t lanes) {
  const auto& schedule = *warp.schedule;
  for (std::uint32_t i = 0; i < schedule.count; ++i) {
    const Split& other = schedule.splits[i];
    if (other.state != SplitState::barrier || other.barrier != id || other.pc == warp.op_index(op))
      continue;
    findings_.divergence(op, warp, std::countr_zero(lanes), other.pc,
                         warp.thread(std::countr_zero(other.mask)));
  }
}

}  // namespace kernwright::sim
