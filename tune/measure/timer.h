// Measures work on one device, in this process.
#pragma once

#include "core/stream.h"
#include "jit/compile/compile_wait.h"
#include "tune/measure/measurement.h"
#include "tune/measure/timed_work.h"

#include <memory>

namespace kernwright {

class Device;
struct ObjectCode;

/// Owns a stream, events, a block of memory for flushing L2 and its own small kernels: make one and
/// keep it. Not thread-safe; only one at a time should measure on a device.
///
/// A sample follows nvbench's method (`measure_cold`): flush, wait, block the stream, event, run,
/// event, unblock, wait. The blocking kernel gives up by itself after a second, so work that waits
/// for the device cannot hang. The sample is then taken anew without it.
class Timer {
 public:
  /// Compiles its small kernels through the usual caches. Throws NvrtcNotFound, OutOfMemory.
  explicit Timer(Device& device);
  /// With kernels made elsewhere by stream_gate_code(); the simulated device needs none.
  Timer(Device& device, const ObjectCode& gate_code);
  ~Timer();
  Timer(const Timer&) = delete;
  Timer& operator=(const Timer&) = delete;

  Device& device() const noexcept;
  const Stream& stream() const noexcept;

  /// Warms the device up after idle time, then samples by the plan. On the simulated device it runs
  /// the work once (after restore) and counts. Throws the work's exceptions, DeviceFault,
  /// DeviceLost, InvalidArgument for a plan that does not fit the work, Error for energy without
  /// NVML. On a GPU also Timeout, Cancelled or Interrupted by `limits`, within 20 ms and possibly
  /// with running work. Energy is measured over successive runs without a flush; it includes
  /// `restore`.
  Measurement measure(const TimedWork& work, const MeasurePlan& plan,
                      const WaitLimits& limits = {});

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace kernwright
