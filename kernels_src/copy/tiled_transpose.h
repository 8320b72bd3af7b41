// Copies whose two sides have different innermost axes.
#pragma once

#include "core/stream.h"
#include "kernels_src/walk_plan.h"

namespace kernwright {
class Device;
}

namespace kernwright::kernels {

/// Queues the copy by tiles if the innermost dimensions of target and source differ and both are
/// long. The plan counts in units of 2^log2_unit bytes; both sides are aligned to them. False for
/// any other copy: then nothing is queued, and dimensions of `plan` may be in another order, faster
/// for a plain walk.
bool queue_tiled_transpose(Device& device, WalkPlan<2>& plan, int log2_unit, const Stream& stream);

}  // namespace kernwright::kernels
