// Both checks of single lanes' accesses, in any space.
#pragma once

#include "sim/check/checked_program.h"
#include "sim/check/race/touch.h"
#include "sim/exec/warp/warp.h"

#include <algorithm>
#include <bit>
#include <cstdint>

namespace kernwright::sim {

/// Calls f(offset, bytes) for aligned pieces, of at most `most` bytes, of the bytes in `bits`.
template <typename F>
void each_run(std::uint32_t bits, std::uint32_t most, F f) {
  while (bits != 0) {
    const auto at = static_cast<std::uint32_t>(std::countr_zero(bits));
    const std::uint32_t alignment = at == 0 ? most : at & (0 - at);
    const auto run = static_cast<std::uint32_t>(std::countr_one(bits >> at));
    const std::uint32_t bytes = std::bit_floor(std::min({run, most, alignment}));
    f(at, bytes);
    bits &= ~(((1u << bytes) - 1) << at);
  }
}

class LaneCheck {
 public:
  explicit LaneCheck(BlockCheck& check) : check_(check) {}

  /// `space` generic: the address's window decides. Addresses without memory are ignored.
  void touch(const Op* op, Warp& warp, int lane, AccessKind mode, std::uint64_t address,
             std::uint64_t bytes, ptx::Space space);
  /// A load of the active lanes; only the bytes of CheckedOp::used count.
  void touch_used(const Op* op, Warp& warp, const CheckedOp& info, const std::uint64_t* address,
                  ptx::Space space);

 private:
  void look(const Op* op, Warp& warp, int lane, const LaneTouch& touch, std::uint64_t* map,
            std::uint64_t at);

  BlockCheck& check_;
};

}  // namespace kernwright::sim
