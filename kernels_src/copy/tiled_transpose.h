// Copies whose two sides have different innermost axes.
#pragma once

#include "core/stream.h"
#include "kernels_src/walk_plan.h"

namespace kernwright {
class Device;
}

namespace kernwright::kernels {

/// Queues the copy by tiles when the target's innermost dimension is not the source's and both are
/// long; the plan is in units of 2^log2_unit bytes that both sides are aligned for. False when it
/// is no such copy: then nothing is queued, and dimensions of `plan` may be in another order, in
/// which a plain walk is faster.
bool queue_tiled_transpose(Device& device, WalkPlan<2>& plan, int log2_unit, const Stream& stream);

}  // namespace kernwright::kernels
