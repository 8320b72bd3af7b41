// How cp.async finds its operands.
#pragma once

#include "sim/exec/warp/lane_memory.h"
#include "sim/ops/lanes.h"

#include <cstdint>

namespace kernwright::sim::KW_SIM_NS {

// Op::flags of cp.async. a: target, b: source, c: bytes.
inline constexpr std::uint32_t kCopyTarget32 = 1;  ///< the shared address register holds 32 bits
inline constexpr std::uint32_t kCopySource32 = 2;
inline constexpr std::uint32_t kCopyHasSize = 4;  ///< e: bytes to read, the rest becomes zero
inline constexpr std::uint32_t kCopyIgnores = 8;  ///< e: predicate, true = read nothing

inline std::uint64_t copy_address(const Warp& warp, std::uint32_t reg, bool narrow,
                                  std::int64_t displacement, int lane) {
  if (narrow) return warp.reg<std::uint32_t>(reg)[lane] + static_cast<std::uint32_t>(displacement);
  return warp.reg<std::uint64_t>(reg)[lane] + static_cast<std::uint64_t>(displacement);
}

/// The target as seen from the block.
inline std::uint64_t copy_target(const Op* op, const Warp& warp, int lane) {
  return seen_from_block(
      warp, ptx::Space::shared,
      copy_address(warp, op->a, (op->flags & kCopyTarget32) != 0, op->imm, lane));
}

}  // namespace kernwright::sim::KW_SIM_NS
