// The tasks of a worker with a device.
#pragma once

#include "worker/tasks.h"

namespace kernwright {

/// The rows for RemoteDevice, to be joined with worker_tasks(): "device.open", "device.allocate",
/// "device.launch", ... The program must have registered the simulated device.
const TaskTable& device_tasks();

/// Bytes of the memory shared by RemoteDevice and its worker. Larger transfers go in parts.
inline constexpr std::size_t kSharedBytes = std::size_t{16} << 20;

}  // namespace kernwright
