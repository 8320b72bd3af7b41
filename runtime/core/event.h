// A marker in a stream: ordering between streams and GPU time.
#pragma once

#include "core/stream.h"

namespace kernwright {

/// Shared reference to a CUevent, destroyed with the last copy. Thread-safe as CUDA's events are.
class Event {
 public:
  explicit Event(Device& device, bool timing = true);

  CUevent handle() const noexcept;
  Device& device() const;
  bool timing() const noexcept;
  /// Marks the work queued on `stream` so far. An empty stream is the device's legacy stream; one
  /// of another device throws InvalidArgument.
  void record(const Stream& stream);
  /// Blocks the host until the marked work is done. Throws DeviceFault or DeviceLost.
  void synchronize() const;
  bool done() const;
  /// Milliseconds between `start` and this event. Both must be made with timing, recorded and done:
  /// InvalidArgument or DriverError otherwise.
  float elapsed_ms(const Event& start) const;

 private:
  struct Box;
  std::shared_ptr<Box> box_;
};

}  // namespace kernwright
