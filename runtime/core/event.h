// A marker in a stream: ordering between streams and GPU time.
#pragma once

#include "core/stream.h"

namespace kernwright {

/// Shared reference to a CUevent, destroyed with the last copy.
class Event {
 public:
  explicit Event(Device& device, bool timing = true);

  CUevent handle() const noexcept;
  Device& device() const;
  void record(const Stream& stream);
  void synchronize() const;
  bool done() const;
  /// Milliseconds between `start` and this event; both must be recorded with timing.
  float elapsed_ms(const Event& start) const;

 private:
  struct Box;
  std::shared_ptr<Box> box_;
};

}  // namespace kernwright
