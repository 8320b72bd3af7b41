// Measures work on one device, in this process.
#pragma once

#include "core/kernel.h"
#include "core/stream.h"
#include "jit/compile/compile_wait.h"
#include "tune/measure/measurement.h"

#include <cstddef>
#include <functional>
#include <memory>
#include <span>
#include <string>

namespace kernwright {

class Device;
class Nvml;
struct ObjectCode;

/// What is measured.
struct TimedWork {
  std::string name;  ///< for messages
  /// Queues one run on the stream, with copy number `copy` of its inputs, and does not wait.
  std::function<void(const Stream& stream, std::size_t copy)> queue;
  std::size_t copies = 1;  ///< of the inputs; the policy `rotate` needs 2 or more
  /// Queues what must be done before each sample, outside of its time: inputs that the work
  /// overwrites are put back. May be empty. The policy `graph` calls it before each graph.
  std::function<void(const Stream& stream)> restore{};
};

/// A launch of `kernel` as work; `config.stream` is ignored. The arguments' bytes are copied, what
/// they point to must live as long as the work. Throws LaunchConfigError, ArgumentError.
TimedWork launch_work(const Kernel& kernel, LaunchConfig config, std::span<void* const> arguments);

/// Owns a stream, events, the block of memory that flushes L2 and its own small kernels: make one
/// and keep it. Not thread-safe; one at a time should measure on a device.
///
/// A sample is taken as nvbench takes it (`measure_cold`): flush, wait, block the stream, event,
/// run, event, unblock, wait. The blocking kernel gives up by itself after a second, so that work
/// which waits for the device cannot hang; the sample is then taken anew without it.
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
  /// 20 ms and with the work possibly still running. Energy is that of runs which follow each other
  /// without a flush; with `restore` it includes that.
  Measurement measure(const TimedWork& work, const MeasurePlan& plan,
                      const WaitLimits& limits = {});

  /// For tests and other sources of energy: used in place of the system's NVML; null: that again.
  void use_nvml(const Nvml* nvml) noexcept;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace kernwright
