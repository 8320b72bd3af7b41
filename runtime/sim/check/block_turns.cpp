// Under a seed: which warp goes on when.
#include "sim/check/block_check.h"
#include "sim/exec/scheduler.h"

#include <numeric>
#include <utility>

namespace kernwright::sim {
namespace {

/// One access in this many lets other warps go first.
constexpr std::uint64_t kPauseEvery = 4;

}  // namespace

/// splitmix64.
std::uint64_t BlockCheck::next_random() noexcept {
  random_ += 0x9e3779b97f4a7c15u;
  std::uint64_t z = random_;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
  return z ^ (z >> 31);
}

bool BlockCheck::pause(const Op* op, Warp& warp) {
  if (next_random() % kPauseEvery != 0) return false;
  Split& split = warp.schedule->current();
  split.pc = warp.op_index(op);
  split.window = kFairnessWindow;
  split.deferred = true;
  warp.stop = Stop::yield;
  return true;
}

const std::uint32_t* BlockCheck::warp_order() {
  if (!pauses) return nullptr;
  if (turns_.empty()) {
    turns_.resize(warps_);
    std::iota(turns_.begin(), turns_.end(), 0u);
  }
  for (std::size_t i = turns_.size(); i > 1; --i) {
    std::swap(turns_[i - 1], turns_[next_random() % i]);
  }
  return turns_.data();
}

}  // namespace kernwright::sim
