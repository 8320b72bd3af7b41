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

/// Owns a stream, events, the block of memory that flushes L2 and its own small kernels: make one
/// and keep it. Not thread-safe; one at a time should measure on a device.
///
/// A sample is taken as nvbench takes it (`measure_cold`): flush, wait, block the stream, event,
/// run, event, unblock, wait. The blocking kernel gives up by itself after a second, so that work
/// with waits for the device cannot hang. The sample is then taken anew without it.
class Timer {
 public:
  /// Compiles its small kernels through the usual caches. Throws NvrtcNotFound, OutOfMemory.
  explicit Timer(Device& device);
  /// With kernels that stream_gate_code() made elsewhere; the simulated device needs none.
  Timer(Device& device, const ObjectCode& gate_code);
  ~Timer();
  Timer(const Timer&) = delete;
  Timer& operator=(const Timer&) = delete;

  Device& device() const noexcept;
  const Stream& stream() const noexcept;

  /// Warms the device up where it was idle, then samples as the plan says. On the simulated device
  /// it runs the work once (after restore) and counts. Throws what the work throws, DeviceFault,
  /// DeviceLost, InvalidArgument for a plan that does not fit the work, Error when energy is asked
  /// for and NVML is not there; on a GPU, Timeout, Cancelled or Interrupted as `limits` say, within
  /// 20 ms and with the work possibly still running. Energy is measured over successive runs
  /// without a flush; it includes `restore`.
  Measurement measure(const TimedWork& work, const MeasurePlan& plan,
                      const WaitLimits& limits = {});

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace kernwright
