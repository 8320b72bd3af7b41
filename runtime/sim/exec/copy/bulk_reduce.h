// Element-wise reductions of bulk copies.
#pragma once

#include "sim/ptx/types.h"

#include <cstddef>

namespace kernwright::sim {

/// to[i] = to[i] op from[i] for `bytes` bytes of elements of `type` (integers of 32 and 64 bits,
/// f16, bf16, f32, f64). AtomOp::none copies. The places may lie anywhere. `shared`: blocks on
/// other host threads may change `to` as well, so each element is changed in one step.
void reduce_bytes(std::byte* to, const std::byte* from, std::size_t bytes, ptx::AtomOp op,
                  ptx::Type type, bool shared = false);

/// Whether the combination exists.
bool can_reduce(ptx::AtomOp op, ptx::Type type) noexcept;

}  // namespace kernwright::sim
