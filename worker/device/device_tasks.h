// The tasks of a worker that holds a device.
#pragma once

#include "worker/tasks.h"

namespace kernwright {

/// The rows that RemoteDevice uses, to be joined with worker_tasks(): "device.open",
/// "device.allocate", "device.launch", ... The program must have registered the simulated device.
const TaskTable& device_tasks();

/// The bytes that RemoteDevice and its worker share for transfers; larger ones go in parts.
inline constexpr std::size_t kSharedBytes = std::size_t{16} << 20;

}  // namespace kernwright
