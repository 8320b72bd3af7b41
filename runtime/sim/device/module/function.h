// Common questions of driver calls about functions.
#pragma once

#include "sim/device/launch/occupancy_model.h"
#include "sim/device/objects.h"

namespace kernwright::sim {

/// Throws Failure INVALID_HANDLE.
std::shared_ptr<Function> find_function(CUfunction handle);

/// Information from its program; keeps the module loaded. Throws Failure INVALID_HANDLE for an
/// unloaded one.
std::shared_ptr<const FunctionInfo> get_info(const Function& function);

/// Most threads of a block: the device's limit, registers and launch bounds.
int max_block_threads(const Function& function);

/// Resident blocks per multiprocessor of a block possible for the function, else 0.
int resident_blocks(const Function& function, int block_threads, std::size_t dynamic_shared);

}  // namespace kernwright::sim
