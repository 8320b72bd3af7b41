// The address plan that a worker keeps for each memory instruction.
#pragma once

#include "sim/mem/memory.h"

#include <array>
#include <cstdint>

namespace kernwright::sim {

inline constexpr int kLanes = 32;

/// The last address pattern of one instruction on one worker. While the lanes keep the same distances
/// from lane 0 the access goes straight to vector loads, and one range check serves the whole warp.
/// All fields belong to exec/ops/memory*.cpp; a zeroed site is "nothing known yet".
struct alignas(64) MemorySite {
  std::array<std::uint64_t, kLanes> offsets{};  ///< from lane 0; 32-bit addresses use the first half
  std::int64_t low = 0, high = 0;               ///< smallest and largest offset of any lane
  AddressRange range{};                         ///< allocation that the last access fell into
  std::uint64_t generation = 0;                 ///< Memory::generation() when `range` was looked up
  std::uint32_t mask = 0;                       ///< lanes that `offsets` speaks of
  std::uint8_t pattern = 0;                     ///< 0 = unknown
  bool writable = false;                        ///< of `range`
};

}  // namespace kernwright::sim
