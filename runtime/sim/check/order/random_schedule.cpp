// The random order of warps.
#include "sim/check/order/random_schedule.h"

#include "base/hash.h"
#include "sim/exec/warp/scheduler.h"

#include <numeric>
#include <utility>

namespace kernwright::sim {
namespace {

/// One access in this many lets other warps go first.
constexpr std::uint64_t kPauseEvery = 4;

}  // namespace

void RandomSchedule::begin(std::uint64_t seed, std::uint64_t block) noexcept {
  state_ = seed ^ (block + 1) * kGoldenRatio;
}

bool RandomSchedule::pause(const Op* op, Warp& warp) {
  if (splitmix(state_) % kPauseEvery != 0) return false;
  Split& split = warp.schedule->current();
  split.pc = warp.op_index(op);
  split.window = kFairnessWindow;
  split.deferred = true;
  warp.stop = Stop::yield;
  return true;
}

const std::uint32_t* RandomSchedule::warp_order() {
  if (order_.empty()) {
    order_.resize(warps_);
    std::iota(order_.begin(), order_.end(), 0u);
  }
  for (std::size_t i = order_.size(); i > 1; --i)
    std::swap(order_[i - 1], order_[splitmix(state_) % i]);
  return order_.data();
}

}  // namespace kernwright::sim
