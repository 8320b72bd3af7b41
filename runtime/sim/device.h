// The simulated device as a driver: a DriverApi table whose functions run on the CPU.
#pragma once

#include "driver/driver_api.h"

namespace kernwright::sim {

/// The table; the same one at each call. Devices, contexts and memory behind it are process-wide.
/// KERNWRIGHT_SIM_DEVICES sets the number of devices (default 1), KERNWRIGHT_SIM_THREADS the host
/// threads of a launch (default: all cores), KERNWRIGHT_SIM_BUDGET the warp instructions per warp.
const DriverApi& driver_api();

}  // namespace kernwright::sim
