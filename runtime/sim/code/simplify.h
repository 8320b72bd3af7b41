// Shortens a function's code: drops copies, and computes once per warp what is the same in every
// block.
#pragma once

#include "sim/code/lower/lowered.h"

#include <cstdint>
#include <vector>

namespace kernwright::sim {

/// What simplify() moved in front of a function's code.
struct Prologue {
  static constexpr std::uint32_t kNone = ~0u;
  std::uint32_t block = kNone;         ///< number of the new block; kNone when nothing moved
  std::vector<std::uint32_t> results;  ///< registers that keep their values as long as the frame
};

/// Works on registers that are written once, before every read. Their copies are read in place of
/// them; and of an entry function's instructions those that compute the same in every block of a
/// launch (from parameters, thread indices, the launch's shape and constants) move into a block of
/// their own, which precedes `order` and runs when a frame is new. Nothing that moves or goes can
/// fault, wait or be seen by other threads; each op keeps the instruction that it came from.
Prologue simplify(Lowered& function, std::vector<std::uint32_t>& order, bool is_entry);

}  // namespace kernwright::sim
