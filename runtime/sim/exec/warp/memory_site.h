// A worker's address plan for each memory instruction.
#pragma once

#include <array>
#include <cstdint>

namespace kernwright::sim {

inline constexpr int kLanes = 32;

/// The last address pattern of one instruction on one worker. While the lanes keep the same
/// distances from the first active lane, the access goes straight to vector loads and one range
/// check serves the whole warp. All fields belong to ops/memory/memory_plan.h; a zeroed site is
/// "nothing known yet".
struct alignas(64) MemorySite {
  std::uint64_t generation = 0;  ///< Memory::generation() when the range was looked up; 0 = no plan
  std::uint64_t first = 0;   ///< lowest address of the first active lane that is inside the range
  std::uint64_t span = 0;    ///< how much higher it may be
  std::uint32_t mask = 0;    ///< lanes that `offsets` speaks of
  std::uint8_t pattern = 0;  ///< a Pattern
  std::uint8_t space = 0;    ///< where a generic address led to
  std::int64_t half = 0;     ///< offset of lane 16 where the pattern has two halves
  std::uint64_t last = 0;    ///< where the last access began
  alignas(64) std::array<std::uint64_t, kLanes> offsets{};  ///< from the first active lane
};

}  // namespace kernwright::sim
