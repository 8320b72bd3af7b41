// Questions about functions that several driver calls ask.
#pragma once

#include "sim/device/launch/occupancy_model.h"
#include "sim/device/objects.h"

namespace kernwright::sim {

/// Throws Failure INVALID_HANDLE.
std::shared_ptr<Function> find_function(CUfunction handle);

/// What its program says; keeps the module loaded. Throws Failure INVALID_HANDLE for one that was
/// unloaded.
std::shared_ptr<const FunctionInfo> info_of(const Function& function);

/// Threads that one block may have: the device's limit, registers and launch bounds.
int max_block_threads(const Function& function);

/// Resident blocks per multiprocessor of a block that the function can be launched with, else 0.
int resident_blocks(const Function& function, int block_threads, std::size_t dynamic_shared);

}  // namespace kernwright::sim
