// Loops that wait for shared memory and can do nothing else.
#pragma once

#include "sim/code/lower/lowered.h"

namespace kernwright::sim {

/// Sets LoweredBlock::busy_waits in the blocks of loops that change no memory and that lanes leave
/// by branches alone whose conditions come, in the branch's own block, from what an mbarrier's test
/// or a load of shared memory says, and from values that the loop does not change. Whatever else
/// such a loop does, counting or looking at the clock, once all that may change that memory is in
/// such loops too they go on for ever.
void mark_busy_waits(Lowered& function, const std::vector<std::uint32_t>& order);

}  // namespace kernwright::sim
