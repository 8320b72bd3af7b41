// Leaves nothing of earlier work in a device's L2 cache.
#pragma once

#include "memory/buffer.h"

namespace kernwright {

/// Owns as much memory as the L2 cache has. Not thread-safe.
class CacheFlush {
 public:
  /// Throws OutOfMemory.
  explicit CacheFlush(Device& device, const Stream& stream);

  /// Queues it: persisting lines of the whole context become normal ones, then exactly the size of
  /// L2 is overwritten.
  void queue(const Stream& stream);
  std::size_t bytes() const noexcept { return memory_.bytes(); }

 private:
  Device& device_;
  Buffer memory_;
};

}  // namespace kernwright
