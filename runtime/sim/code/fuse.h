// Joins what compilers make of x[i], product, sum and access, and knows shuffles by constants.
#pragma once

#include "sim/code/lower/lowered.h"

#include <cstdint>
#include <vector>

namespace kernwright::sim {

/// mul.wide and the additions to a base that alone read its product become one op each,
/// d = base + index * bytes. Where up to three accesses of that many bytes a lane read the address
/// and nobody else does, the op goes to each of them, and the pair gets a handler that does both in
/// full warps (LoweredOp::with_next).
/// Shuffles whose distance is a constant get a handler that knows it. Runs behind simplify(). Each
/// op keeps the instruction that it came from, and faults stay with the access.
void fuse(Lowered& function, const std::vector<std::uint32_t>& order);

}  // namespace kernwright::sim
