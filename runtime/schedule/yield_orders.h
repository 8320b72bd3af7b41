// Orders to stop, on their way to launches under way.
#pragma once

#include "core/event.h"
#include "core/stream.h"
#include "memory/pinned_buffer.h"

#include <functional>
#include <mutex>
#include <vector>

namespace kernwright::schedule {

/// Stores orders in memory of the device, beside the launches that read them: by copies of a word
/// on an urgent stream. Thread-safe.
class YieldOrders {
 public:
  using Words = std::vector<CUdeviceptr>;

  /// `stream` is for orders alone. Throws OutOfMemory, the driver's errors.
  explicit YieldOrders(Stream stream);
  ~YieldOrders();
  YieldOrders(const YieldOrders&) = delete;
  YieldOrders& operator=(const YieldOrders&) = delete;

  /// Stores 1 in the words that `take` tells. It is called such that no fence() lies between that
  /// and the store: words of launches that have ended are not to be told. Throws DriverError.
  void send(const std::function<Words()>& take);
  /// What is queued on `behind` from now on goes behind all orders sent. Throws DriverError.
  void fence(const Stream& behind);

 private:
  std::mutex mutex_;  ///< taken before that of the scheduler
  const Stream stream_;
  PinnedBuffer one_;
  Event sent_;
  bool is_used_ = false;  ///< an order was sent
};

}  // namespace kernwright::schedule
