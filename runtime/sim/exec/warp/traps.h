// Findings of op handlers with text: kept out of ops, whose files are built several times.
#pragma once

#include "sim/exec/warp/warp.h"

#include <cstdint>

namespace kernwright::sim {

/// trap and brkpt: the first active lane stops the launch. Returns null.
const Op* report_trap(const Op* op, Warp& warp);

/// shfl, redux, mbarrier, ...: `lane` used an operand not allowed by the instruction. Returns null.
const Op* report_operand(const Op* op, Warp& warp, int lane, const char* what, std::uint64_t value);

}  // namespace kernwright::sim
