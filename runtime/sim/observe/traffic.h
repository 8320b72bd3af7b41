// What the memory instruction at an op is about to touch, space by space.
#pragma once

#include "sim/line_profile.h"
#include "sim/observe/observed_program.h"

namespace kernwright::sim {

/// Counts of the memory instruction at `op` for the lanes that run; before it runs.
LineCounts count_memory(const Op* op, const Warp& warp, const ObservedOp& info);

/// Counts of the branch at `op` for the lanes that run.
LineCounts count_branch(const Op* op, const Warp& warp, const ObservedOp& info);

}  // namespace kernwright::sim
