// Copies of long lines that are not aligned to 16 bytes.
#pragma once

#include "core/stream.h"
#include "kernels_src/walk_plan.h"

#include <cstdint>
#include <optional>
#include <span>

namespace kernwright {
class Device;
}

namespace kernwright::kernels {

/// `Lines` of copy_lines.cu.
struct LineCopy {
  std::uint64_t to = 0, from = 0;
  std::int64_t to_pitch = 0, from_pitch = 0;
  std::int32_t bytes = 0;
  std::uint32_t log2_lanes = 0, parts = 0, units = 0, count = 0;
};

/// The copy, if the bytes of lines follow each other on both sides, and units of 16 bytes save
/// time. The plan counts in units of 2^log2_unit bytes; both sides are aligned to them.
std::optional<LineCopy> line_copy(const WalkPlan<2>& plan, int log2_unit);

/// Queues one copy or two, whose targets and sources do not overlap, by one kernel.
void queue_line_copies(Device& device, std::span<const LineCopy> copies, int log2_unit,
                       const Stream& stream);

}  // namespace kernwright::kernels
