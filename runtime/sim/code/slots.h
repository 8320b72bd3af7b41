// Places the virtual registers of a function in its frame.
#pragma once

#include "sim/code/lower/lowered.h"

#include <cstdint>
#include <vector>

namespace kernwright::sim {

/// Of the registers, constants and call parameters of one function for a warp: 1 MiB a thread.
inline constexpr std::uint64_t kMaxFrameBytes = std::uint64_t{32} << 20;

/// Where everything of a frame lies, in bytes from its start.
struct FrameLayout {
  std::vector<std::uint32_t> registers;  ///< per virtual register; unused ones share the sink
  std::vector<std::uint32_t> constants;
  std::vector<std::uint32_t> areas;
  std::vector<std::uint32_t> live_at_entry;  ///< registers that may be read before they are written
  std::uint64_t bytes = 0;  ///< above kMaxFrameBytes: too many, and no place is right
};

/// Bytes of the slot of one register of `lane_bytes` (kPredicateWidth: a predicate).
std::uint32_t slot_bytes(std::uint8_t lane_bytes) noexcept;

/// Registers that may be read before they are written.
std::vector<std::uint32_t> live_at_entry(const Lowered& function,
                                         const std::vector<std::uint32_t>& order);

/// Liveness over blocks (bit sets), then a linear scan over the blocks in `order` that gives
/// registers of one width, which are never alive together, the same slot. Registers of one op never
/// share, and those in `kept` share with none that comes later.
FrameLayout assign_slots(const Lowered& function, const std::vector<std::uint32_t>& order,
                         const std::vector<std::uint32_t>& kept = {});

}  // namespace kernwright::sim
