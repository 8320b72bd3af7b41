// The simulated device as a driver: a DriverApi table whose functions run on the CPU.
#pragma once

#include "driver/driver_api.h"

#include <functional>
#include <string_view>

namespace kernwright::sim {

/// The table; the same one at each call. Devices, contexts and memory behind it are process-wide.
/// KERNWRIGHT_SIM_DEVICES sets the number of devices, KERNWRIGHT_SIM_MEMORY the bytes of each,
/// KERNWRIGHT_SIM_THREADS the host threads of a launch, KERNWRIGHT_SIM_BUDGET the instructions that
/// one warp may execute. All functions are thread-safe.
///
/// Work runs when it is issued, in issue order, which is a legal order of every stream; so nothing
/// is ever pending, and a call that runs a kernel returns the kernel's own error. Unlike on a GPU
/// the context stays usable after such an error.
const DriverApi& driver_api();

/// Takes what device code prints, whole launches at a time and in block order; an empty function
/// restores the default, stdout. Called on the thread that launches, with no lock held, before the
/// launch returns.
using PrintSink = std::function<void(std::string_view text)>;
void set_print_sink(PrintSink sink);

}  // namespace kernwright::sim
