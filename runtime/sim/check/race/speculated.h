// The race check's data about loads whose use is still unknown.
#pragma once

#include "sim/check/history/shadow.h"
#include "sim/exec/warp/memory_site.h"
#include "sim/ptx/types.h"

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <utility>

namespace kernwright::sim {

struct CheckedOp;
struct Op;
struct Warp;

/// The last execution of one load in one frame, by lane.
struct Speculated {
  Warp* warp = nullptr;
  std::uint32_t lanes = 0;    ///< those that nobody has taken yet
  std::uint32_t met = 0;      ///< that have met others of their warp since
  std::uint32_t closed = 0;   ///< perhaps ordered before later work of others
  std::uint32_t pending = 0;  ///< that raced with the accesses of `other`
  std::array<Shadow, kLanes> stamp{}, other{};
  std::array<std::uint64_t, kLanes> address{};
  std::array<ptx::Space, kLanes> space{};
};

class BlockCheck;

/// The speculated loads of one block.
class SpeculatedLoads {
 public:
  explicit SpeculatedLoads(BlockCheck& check) : check_(check) {}

  bool any = false;  ///< lanes loaded values they may not want; these race only if they do

  void clear() {
    loads_.clear();
    any = false;
  }
  /// The race check of a load with CheckedOp::speculated; the active lanes' addresses.
  void note(const Op* op, Warp& warp, const CheckedOp& info, const std::uint64_t* address,
            ptx::Space space);
  /// The active lanes use such loads' values (CheckedOp::takes), or some of them do.
  void take(const Op* op, Warp& warp);
  /// Before lanes of a warp meet (`warp`), or before another event that may order later work of
  /// others after the loads (null).
  void look(const Warp* warp);

 private:
  void look_again(Speculated& load, std::uint32_t index, int lane);
  void examine(Speculated& load, std::uint32_t index, int lane);
  void take_lane(Speculated& load, std::uint32_t index, int lane);

  BlockCheck& check_;
  /// By frame and index of the load.
  std::map<std::pair<const std::byte*, std::uint32_t>, Speculated> loads_;
};

}  // namespace kernwright::sim
