// What a launch that yields reads and counts.
#pragma once

#include "core/event.h"
#include "core/launch/launch_pieces.h"
#include "core/stream.h"
#include "memory/buffer.h"
#include "memory/pinned_buffer.h"
#include "schedule/yield_orders.h"

#include <cstdint>
#include <memory>

namespace kernwright::schedule {

/// The order to stop, and the number of the next tile, in memory of the device: a launch reads the
/// order for each tile. For one launch at a time. Used by one thread, but other threads may tell
/// the launch and send the order.
class YieldWords {
 public:
  /// Of launches on `stream`; the words are in memory of `resource`. `orders` outlives this. Throws
  /// OutOfMemory.
  YieldWords(const Stream& stream, std::shared_ptr<MemoryResource> resource, YieldOrders& orders);
  /// Waits for nothing; the memory is reused behind the last launch and the last order.
  ~YieldWords();
  YieldWords(const YieldWords&) = delete;
  YieldWords& operator=(const YieldWords&) = delete;

  /// New work: waits for the end of the last launch; then the first tile is next. Throws
  /// DeviceFault, DeviceLost.
  void reset();
  YieldAddresses addresses() const noexcept;
  /// Set to 1 by whoever tells the launch to stop, in front of the order itself.
  std::uint32_t* told() noexcept { return &told_; }
  /// In front of a launch, which nobody tells to stop any more: takes back the order to the one
  /// before, behind its arrival. Throws DriverError.
  void clear();
  /// Behind the launch, in the order of the stream.
  void end();
  /// When the launch has ended or no order reaches it any more: whether it was told to stop before
  /// its next tile was `until`. Waits for the end of a launch that was told to. Throws DeviceFault,
  /// DeviceLost.
  bool has_yielded(std::uint64_t until);

 private:
  void clear(CUdeviceptr first, std::size_t count);

  const Stream stream_;
  YieldOrders& orders_;
  PinnedBuffer host_;  ///< the next tile as it was at an end
  Buffer words_;       ///< an order and a next tile for each work: they are cleared all together
  std::size_t work_;   ///< the place of its words
  std::uint32_t told_ = 0;
  Event end_;
  bool is_queued_ = false;  ///< since the last reset()
};

}  // namespace kernwright::schedule
