// Distinguishes rounds of work from rounds of waiting.
#include "sim/exec/block/block_waits.h"

#include <algorithm>
#include <utility>

namespace kernwright::sim {
namespace {

/// A block with nothing but waits for so many rounds seems to wait for others.
constexpr std::uint32_t kIdleRounds = 256;

/// Instructions from one yield to the next in a waiting loop: 16 iterations; jumped-over ones
/// count.
constexpr std::uint64_t kIdleInstructions = 32768;

/// Instructions of a loop that does little but wait.
constexpr std::uint64_t kFewInstructions = 2048;

/// Barriers between two such yields: a loop with more is no waiting loop.
constexpr std::uint32_t kPlainRounds = 1024;

/// A longer loop, or one with barriers in it, may as well work on shared data with atomics. So more
/// of it is needed until a launch counts as endless.
constexpr std::uint64_t kWorkingWeight = 8;

}  // namespace

void BlockWaits::begin(std::size_t warps) {
  executed_at_yield_.assign(warps, 0);
  idle_rounds_ = plain_rounds_ = 0;
  executed_ = spent_ = waited_ = 0;
}

bool BlockWaits::seem_long() const noexcept { return idle_rounds_ >= kIdleRounds; }

RoundKind BlockWaits::slice_kind(const Warp& warp, WarpStatus status) {
  if (status == WarpStatus::yielded) {
    const std::uint64_t before = std::exchange(executed_at_yield_[warp.index], warp.executed);
    const bool is_idle = warp.may_wait && warp.executed - before <= kIdleInstructions;
    return is_idle ? RoundKind::idle : RoundKind::work;
  }
  const auto* const splits = warp.schedule->splits.data();
  const bool at_barriers =
      std::all_of(splits, splits + warp.schedule->count,
                  [](const Split& split) { return split.state == SplitState::barrier; });
  return status == WarpStatus::waiting && at_barriers ? RoundKind::plain : RoundKind::work;
}

void BlockWaits::count(RoundKind kind, bool met, const std::vector<Warp>& warps) {
  const std::uint64_t before = std::exchange(executed_, 0), spent_before = std::exchange(spent_, 0);
  for (const Warp& warp : warps) {
    executed_ += warp.executed;
    spent_ += warp.spent();
  }
  plain_rounds_ = kind == RoundKind::idle ? 0 : plain_rounds_ + 1;
  const std::uint64_t ran = executed_ - before;
  if (kind == RoundKind::work || ran > kIdleInstructions * warps.size() ||
      plain_rounds_ > kPlainRounds) {
    idle_rounds_ = 0;
    waited_ = 0;
    return;
  }
  if (kind == RoundKind::idle) ++idle_rounds_;
  const bool may_work = met || kind == RoundKind::plain || ran > kFewInstructions * warps.size();
  const std::uint64_t spent = spent_ - spent_before;
  waited_ += may_work ? spent / kWorkingWeight : spent;
}

}  // namespace kernwright::sim
