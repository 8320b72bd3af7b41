// The accesses of the memory instruction at an op, by space, before it runs.
#pragma once

#include "sim/line_profile.h"
#include "sim/observe/observed_program.h"

namespace kernwright::sim {

/// Counts of the memory instruction at `op` for the running lanes; before it runs.
LineCounts count_memory(const Op* op, const Warp& warp, const ObservedOp& info);

/// Counts of the branch at `op` for the running lanes.
LineCounts count_branch(const Op* op, const Warp& warp, const ObservedOp& info);

}  // namespace kernwright::sim
