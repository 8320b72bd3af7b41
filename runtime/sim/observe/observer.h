// Watches the blocks of one runner: stands in front of every op of an observed program.
#pragma once

#include "sim/exec/watcher.h"
#include "sim/observe/observed_launch.h"

#include <array>
#include <cstdint>
#include <string_view>
#include <vector>

namespace kernwright::sim {

/// Lanes with the guard of `instruction` on, in the running frame.
std::uint32_t guard_lanes(const Warp& warp, const ObservedOp& op);

/// Address of a lane as the instruction at `op` has it; `second`: of a copy's source.
std::uint64_t lane_address(const Op* op, const Warp& warp, const ObservedOp& info, int lane,
                           bool second = false);
/// Bytes read by a lane of cp.async; Op::c are the written ones.
std::uint32_t copied_bytes(const Op* op, const Warp& warp, const ObservedOp& info, int lane);

/// One per runner. Not thread-safe.
class Observer final : public Watcher {
 public:
  explicit Observer(ObservedLaunch& launch) : launch_(launch) {}

  void attach() override;
  /// Runs the op and reports to the recorders, in the form of OpFn.
  const Op* step(const Op* op, Warp& warp);
  /// A lane printed, within step().
  void printed(const Warp& warp, int lane, std::string_view text) override;

 private:
  void count_guard(const Warp& warp, const ObservedOp& info, std::uint32_t index,
                   std::uint32_t off);
  const Op* run_counted(const Op* op, Warp& warp, const ObservedOp& info, OpFn run,
                        std::uint32_t known, std::uint32_t& done);
  std::uint32_t note_meeting(const Warp& warp, const ObservedOp& info, std::uint32_t index);

  ObservedLaunch& launch_;
  /// Lanes whose last op was a bar.warp.sync, with this op.
  struct Meeting {
    std::uint32_t lanes = 0;
    std::array<std::uint32_t, kLanes> at{};
  };

  LineCounts* counts_ = nullptr;   ///< by op; null: not counted
  std::vector<Meeting> meetings_;  ///< by warp
};

}  // namespace kernwright::sim
