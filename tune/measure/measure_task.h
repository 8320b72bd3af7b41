// Measuring on a device behind a worker.
#pragma once

#include "jit/compile/compile_wait.h"
#include "tune/measure/measurement.h"

namespace kernwright {

class RemoteDevice;
struct RemoteLaunch;

/// Measures the launch in the worker, by the Timer that it keeps: the same as Timer::measure() in
/// this process. For the policy `rotate` the worker makes the copies of the buffers that the kernel
/// reads. On the simulated device: counts. Throws what launch() of the device throws.
Measurement measure(RemoteDevice& device, const RemoteLaunch& launch, const MeasurePlan& plan,
                    const WaitLimits& limits = {});

}  // namespace kernwright
