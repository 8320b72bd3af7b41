// Holds a stream back until the host has queued everything, and reads the clock of an SM.
#pragma once

#include "core/kernel.h"
#include "core/stream.h"
#include "jit/compile/target.h"
#include "jit/object_code.h"
#include "memory/pinned_buffer.h"

#include <cstdint>
#include <memory>
#include <optional>

namespace kernwright {

/// Clocks read by one thread on an SM at one moment.
struct ClockStamp {
  std::uint64_t nanoseconds = 0;  ///< %globaltimer
  std::uint64_t cycles = 0;       ///< %clock64 of that SM
  std::uint32_t sm = 0;
  std::uint32_t gave_up = 0;  ///< of a gate: it was not opened in time
};

/// The SM clock between two stamps; nothing when they are of different SMs or less than `least_ns`
/// apart.
std::optional<double> clock_mhz(const ClockStamp& begin, const ClockStamp& end,
                                std::uint64_t least_ns);

/// The gate's kernels for a device, through the usual caches. Throws NvrtcNotFound.
std::shared_ptr<const ObjectCode> stream_gate_code(const DeviceTarget& target);
std::shared_ptr<const ObjectCode> stream_gate_code(Device& device);

/// A GPU's only. One gate is closed at a time; not thread-safe.
class StreamGate {
 public:
  /// Loads the code of stream_gate_code().
  StreamGate(Device& device, const ObjectCode& code);

  /// Queues a kernel that waits for open(), at most `limit_ns` after its start.
  void close(const Stream& stream, std::uint64_t limit_ns);
  void open() noexcept;
  /// Queues a kernel that writes end().
  void stamp(const Stream& stream);

  // Valid when the stream is done.
  const ClockStamp& begin() const noexcept { return state_->opened; }  ///< when the gate ended
  const ClockStamp& end() const noexcept { return state_->stamped; }

 private:
  struct SharedState {
    std::uint32_t open_count;  ///< written by the host, read by the kernel that waits
    std::uint32_t padding[31];
    ClockStamp opened, stamped;
  };
  StreamGate(Device& device, const Module& module, const ObjectCode& code);

  Kernel gate_, stamp_;
  PinnedBuffer memory_;
  SharedState* state_;
  std::uint32_t closed_ = 0;  ///< gates so far
};

}  // namespace kernwright
