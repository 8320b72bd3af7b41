// What a launch that yields reads and counts.
#pragma once

#include "core/event.h"
#include "core/launch/launch_pieces.h"
#include "core/stream.h"
#include "memory/buffer.h"
#include "memory/pinned_buffer.h"

#include <cstdint>
#include <memory>

namespace kernwright::schedule {

/// The order to stop, in page-locked memory of the host, where a store reaches a launch under way;
/// and the number of the next tile, in memory of the device. For one launch at a time. Used by one
/// thread, but other threads may store an order.
class YieldWords {
 public:
  /// Of launches on `stream`; the counters are in memory of `resource`. Throws OutOfMemory.
  YieldWords(const Stream& stream, std::shared_ptr<MemoryResource> resource);
  /// Waits for nothing; the memory is reused behind the last launch. Nobody may store an order.
  ~YieldWords();
  YieldWords(const YieldWords&) = delete;
  YieldWords& operator=(const YieldWords&) = delete;

  /// New work: waits for the end of the last launch; then the first tile is next. Throws
  /// DeviceFault, DeviceLost.
  void reset();
  YieldAddresses addresses() const noexcept;
  /// The order; 0: the launch goes on.
  std::uint32_t* order() const noexcept { return static_cast<std::uint32_t*>(host_.data()); }
  /// In front of a launch, which nobody has told to stop.
  void clear() noexcept;
  /// Behind the launch, in the order of the stream.
  void end();
  /// When the launch has ended or no order reaches it any more: whether it was told to stop before
  /// its next tile was `until`. Waits for the end of a launch that was told to. Throws DeviceFault,
  /// DeviceLost.
  bool has_yielded(std::uint64_t until);

 private:
  const Stream stream_;
  PinnedBuffer host_;  ///< the order, and a counter as it was at an end
  Buffer counters_;    ///< one for each work: they are cleared all together
  std::size_t work_;   ///< the place of its counter
  Event end_;
  bool is_queued_ = false;  ///< since the last reset()
};

}  // namespace kernwright::schedule
