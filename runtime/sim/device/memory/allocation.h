// Making allocations that the driver's records know.
#pragma once

#include "sim/device/objects.h"

namespace kernwright::sim {

/// Memory of `bytes` for the context, of the kind, flags and pool that `base` names: on the
/// context's device, or on the host for the host kinds. Throws Failure INVALID_VALUE for 0 bytes
/// and OUT_OF_MEMORY.
std::uint64_t allocate_for(Context& context, std::uint64_t bytes, const AllocationInfo& base);

}  // namespace kernwright::sim
