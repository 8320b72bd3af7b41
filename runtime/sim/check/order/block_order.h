// The order of a block's accesses: the block's time, and the warps' knowledge of each other.
#pragma once

#include "sim/check/block_place.h"
#include "sim/check/history/shadow.h"
#include "sim/check/order/clock.h"
#include "sim/exec/block/barriers.h"
#include "sim/exec/warp/warp.h"

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>

namespace kernwright::sim {

class BlockOrder {
 public:
  /// By warp: a tick.
  using WarpTicks = std::array<std::uint32_t, kMostWarps>;

  BlockOrder(const BlockPlace& place, std::uint32_t warps);

  Shadow stamp = 0;         ///< the tick now
  Shadow floor = 0;         ///< what this block did below happened before
  Shadow first = 0;         ///< this block's shadows between here and `floor` need no further look
  Shadow launch_floor = 0;  ///< shadows of earlier launches lie below
  bool scattered = false;   ///< this block has ticks on both sides of another block's

  /// A block begins. `parts`: as CheckedProgram::kernel_orders_parts(). False: ticks have run out.
  bool begin(bool parts);
  /// The next tick. False as above.
  bool advance();
  std::uint32_t tick() const noexcept { return tick_; }
  std::uint32_t begin_tick() const noexcept { return begin_tick_; }

  // Whether accesses are ordered. All take the currently acting warp.
  /// Whether the shadow is too old to matter for any access.
  bool is_forgotten(Shadow shadow, bool global) const {
    const Shadow when = uncontended(shadow);
    return shadow == 0 || (global ? when < launch_floor : !place_.clustered && when < floor);
  }
  /// `copied`: the shadow of a copy; its end was told by an mbarrier.
  bool is_ordered(Shadow shadow, const Warp& warp, int lane, bool global,
                  bool copied = false) const;
  /// The same for the shadow of a write or a copy.
  bool is_write_ordered(Shadow shadow, const Warp& warp, int lane, bool global) const {
    if (!is_by_copy(shadow)) return is_ordered(shadow, warp, lane, global);
    return (shadow & kLookCloser) == 0 && is_ordered(shadow, warp, lane, global, true);
  }
  /// Whether a proxy fence known to the warp came after the write.
  bool is_proxied(Shadow write, const Warp& warp) const;
  /// Whether the warp comes after this tick of a place of its own block (clock.h).
  bool knows(std::uint32_t warp, std::uint32_t place, std::uint32_t tick) const {
    return tick < known_[warp][place];
  }
  /// The warp's knowledge of another block; null: nothing.
  const BlockPast* get_past(std::uint32_t warp, std::uint32_t block) const;
  /// Whether some warp comes after this tick of another block's place.
  bool is_known(std::uint32_t block, std::uint32_t place, std::uint32_t tick) const;
  /// Below, the warp's accesses are ordered for all of its lanes.
  std::uint32_t warp_floor(std::uint32_t warp) const noexcept { return warp_floor_[warp]; }
  Shadow met(std::uint32_t warp) const noexcept { return Shadow{warp_floor_[warp]} << kTickShift; }
  /// Whether the lane met any other lane of its warp after this tick.
  bool has_met(std::uint32_t warp, int lane, std::uint32_t tick) const;

  // Events that order them.
  void meet(const Warp& warp, const std::uint32_t* members);
  /// All that the warp comes after, with its own accesses.
  SharedPast snapshot(std::uint32_t warp) const;
  /// The past released by the warp's fences of at least this reach.
  SharedPast fenced(std::uint32_t warp, Reach reach) const;
  /// These lanes come after `past`.
  void absorb(const Warp& warp, std::uint32_t lanes, const SharedPast& past);
  /// Orders the warp after everything done by a place until now.
  void learn(std::uint32_t warp, std::uint32_t place) { known_[warp][place] = tick_; }
  /// The warp comes after `past` when a fence follows.
  void defer(std::uint32_t warp, const SharedPast& past);
  void fence(const Warp& warp, Reach reach);
  /// Makes the warp's knowledge visible to the asynchronous proxy.
  void fence_proxy(const Warp& warp);
  /// Before a strong write and after a strong read of the active lanes at these addresses.
  void publish(const Warp& warp, const std::uint64_t* addresses, ptx::Space space,
               const CheckedOp& op);
  void observe(const Warp& warp, const std::uint64_t* addresses, ptx::Space space,
               const CheckedOp& op);
  /// A block barrier is complete. `arrivals`: of threads that did not wait. Returns whether all
  /// threads of the block go on from there.
  bool release(const Block& block, std::uint32_t id, const Barriers::One& barrier,
               const WarpTicks& arrivals);
  /// All threads of the cluster have arrived, those of this block first at these ticks, and wait.
  void end_cluster_arrivals(const WarpTicks& arrivals);

 private:
  using LaneMatrix = std::array<std::array<std::uint32_t, kLanes>, kLanes>;

  bool take_ticks(std::uint32_t next);
  std::uint32_t* lane_row(std::uint32_t warp, int lane);
  CheckedLaunch::Variable get_variable(std::uint64_t address, ptx::Space space,
                                       std::size_t reach) const;
  template <typename F>
  void each_variable(const Warp& warp, const std::uint64_t* addresses, ptx::Space space,
                     Reach reach, F f) const;
  void join_waiting(const Barriers::One& barrier, const WarpTicks& arrivals, const Block& block,
                    const WarpTicks& waiting);
  /// Two operations order the accesses around them if each reaches the other. A release within a
  /// reach is kept for it and for all smaller ones, and acquired in the same way. Calls f(reach)
  /// for each of those for an operation of reach `reach`.
  template <typename F>
  void each_reach(Reach reach, F f) const {
    for (std::size_t r = 0; r <= static_cast<std::size_t>(reach); ++r) {
      if (place_.launch.program.reaches[r]) f(r);
    }
  }

  const BlockPlace& place_;
  std::uint32_t warps_ = 0;
  bool parts_ = false;
  std::uint32_t tick_ = 0, begin_tick_ = 0;
  WarpTicks warp_floor_{};  ///< ticks below: ordered within the warp
  std::array<Known, kMostWarps> known_{};
  std::array<std::unique_ptr<LaneMatrix>, kMostWarps> lane_known_;  ///< where parts of warps met
  std::array<SharedPast, kMostWarps> past_;
  std::array<PastByReach, kMostWarps> fenced_, pending_;
};

}  // namespace kernwright::sim
