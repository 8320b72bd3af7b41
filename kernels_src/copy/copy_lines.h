// Copies of long lines that are not aligned to 16 bytes.
#pragma once

#include "core/stream.h"
#include "kernels_src/walk_plan.h"

namespace kernwright {
class Device;
}

namespace kernwright::kernels {

/// Queues the copy if the bytes of lines follow each other on both sides, and units of 16 bytes
/// save time. The plan counts in units of 2^log2_unit bytes; both sides are aligned to them. False
/// for any other copy: then nothing is queued.
bool queue_line_copy(Device& device, const WalkPlan<2>& plan, int log2_unit, const Stream& stream);

}  // namespace kernwright::kernels
