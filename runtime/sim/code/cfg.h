// The order in which a function's blocks are laid out.
#pragma once

#include "sim/code/lower/lowered.h"

#include <cstdint>
#include <vector>

namespace kernwright::sim {

/// Numbers of the reachable blocks in reverse post-order, the blocks of a loop before what follows
/// the loop. The scheduler runs the lanes with the lowest position first, so this order makes lanes
/// wait where they can meet again.
std::vector<std::uint32_t> block_order(const Lowered& function);

}  // namespace kernwright::sim
