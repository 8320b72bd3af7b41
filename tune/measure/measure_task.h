// Measuring on a device behind a worker.
#pragma once

#include "tune/measure/measurement.h"
#include "worker/device/remote_device.h"
#include "worker/tasks.h"

#include <span>

namespace kernwright {

/// Before each sample `to` gets the bytes of `from`, outside of the time.
struct RemoteRestore {
  RemoteBuffer to, from;
};

/// Measures the launch in the worker, by a Timer kept there: the same as Timer::measure() in this
/// process. For the policy `rotate` the worker makes copies of the launch's buffers, together at
/// least twice as large as L2, and frees them. On the simulated device: counts. Throws the
/// exceptions of RemoteDevice::launch() and Timer::measure(); OutOfMemory for copies without room.
/// At the end of `limits` the worker is killed.
Measurement measure(RemoteDevice& device, const RemoteLaunch& launch, const MeasurePlan& plan,
                    const WaitLimits& limits = {}, std::span<const RemoteRestore> restore = {});

/// The worker's row "measure", to be joined with device_tasks().
const TaskTable& measure_tasks();

}  // namespace kernwright
