// The common last step of branches, alone or after their comparison.
#pragma once

#include "sim/exec/warp/warp.h"
#include "sim/numeric/isa_namespace.h"

#include <cstdint>

namespace kernwright::sim::KW_SIM_NS {

/// Counts a backward branch (forward ones have zeros in `imm` and `flags`); rarely the split has to
/// stop before it goes on at `next`.
[[gnu::always_inline]] inline const Op* back_edge(const Op* op, Warp& warp, const Op* next) {
  warp.executed += static_cast<std::uint64_t>(op->imm);
  warp.window -= static_cast<std::int32_t>(op->flags);
  if (warp.window <= 0 || warp.executed > warp.budget) [[unlikely]]
    return warp.slow_back_edge(op, next);
  return next;
}

/// Internal::branch on the predicate `bits`.
template <bool kMasked>
[[gnu::always_inline]] inline const Op* take_branch(const Op* op, Warp& warp, std::uint32_t bits) {
  const std::uint32_t all = kMasked ? warp.mask : kAllLanes;
  const std::uint32_t taken = (bits ^ op->b) & all;
  if (taken == 0) return op + 1;
  if (taken != all) return warp.diverge(op, taken);
  return back_edge(op, warp, op + op->target);
}

}  // namespace kernwright::sim::KW_SIM_NS
