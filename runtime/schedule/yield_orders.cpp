// Copies of one word, which need no multiprocessor.
#include "schedule/yield_orders.h"

#include "base/log.h"
#include "core/device.h"
#include "driver/order_scope.h"

#include <cstdint>
#include <exception>
#include <utility>

namespace kernwright::schedule {

YieldOrders::YieldOrders(Stream stream)
    : stream_(std::move(stream)),
      one_(stream_.device(), sizeof(std::uint32_t)),
      sent_(stream_.device(), false) {
  *static_cast<std::uint32_t*>(one_.data()) = 1;
}

YieldOrders::~YieldOrders() {
  if (stream_.device().lost()) return;
  try {
    one_.use_on(stream_);
  } catch (const std::exception& error) {
    log_release_failure("orders to yield", error.what());
  }
}

void YieldOrders::send(const std::function<Words()>& take) {
  const std::lock_guard lock(mutex_);
  const Words words = take();
  if (words.empty()) return;
  is_used_ = true;
  Device& device = stream_.device();
  const ContextGuard guard(device);
  const OrderScope scope;
  for (const CUdeviceptr word : words) {
    device.check(device.driver().cuMemcpyHtoDAsync(word, one_.data(), sizeof(std::uint32_t),
                                                   stream_.handle()),
                 "cuMemcpyHtoDAsync");
  }
}

void YieldOrders::fence(const Stream& behind) {
  const std::lock_guard lock(mutex_);
  if (!is_used_) return;
  sent_.record(stream_);
  behind.wait(sent_);
}

}  // namespace kernwright::schedule
