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
  /// of another device throws InvalidArgument. On a captured stream the event marks a place in that
  /// capture. Other streams join the capture by it; it can be waited for only there. With
  /// `external` each launch of the graph records it, for waits and times outside.
  void record(const Stream& stream, bool external = false);
  /// Blocks the host until the marked work is done. Throws DeviceFault or DeviceLost; CaptureError,
  /// as done() and elapsed_ms() do, for an event that was last recorded into a capture.
  void synchronize() const;
  bool done() const;
  /// Milliseconds between `start` and this event. Both must be made with timing, recorded and done:
  /// InvalidArgument or DriverError otherwise.
  float elapsed_ms(const Event& start) const;

  /// The driver's number of the capture that it was last recorded into; 0 when it was none.
  std::uint64_t capture() const noexcept;
  /// Whether that capture was a Graph's; this library knows the end of those.
  bool captured_by_graph() const noexcept;

 private:
  struct Box;
  std::shared_ptr<Box> box_;
};

}  // namespace kernwright
