// A series of timed launches in a worker: fresh inputs for each, put there just before it.
#pragma once

#include "jit/compile/compile_wait.h"
#include "worker/device/remote_device.h"
#include "worker/tasks.h"

#include <cstdint>
#include <span>
#include <utility>
#include <vector>

namespace kernwright {

/// One launch of a series. Its buffers are its own. `staged` ones have contents: the worker takes
/// them off the device first and puts them back right before the launch, so no earlier launch can
/// find them. `poisoned` ones are filled with random bytes then. All of them are taken off the
/// device right after the launch, so no later launch does its work. They are back at the end of the
/// series.
struct SeriesLaunch {
  RemoteLaunch launch;
  std::vector<RemoteBuffer> staged;
  std::vector<std::pair<RemoteBuffer, std::uint64_t>> poisoned;  ///< with the seed of the bytes
};

/// Times the launches one after the other, each once and with a cold L2 cache, on a GPU. Returns
/// milliseconds for each but the first: it warms up. Throws the errors of launch().
std::vector<double> time_series(RemoteDevice& device, std::span<const SeriesLaunch> series,
                                const WaitLimits& limits = {});

/// The rows for time_series(), to be joined with device_tasks().
const TaskTable& judge_tasks();

}  // namespace kernwright
