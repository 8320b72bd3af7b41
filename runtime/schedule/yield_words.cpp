// Memory of launches that yield.
#include "schedule/yield_words.h"

#include "base/log.h"
#include "core/device.h"
#include "core/launch/launch_pause.h"
#include "memory/memory_resource.h"

#include <atomic>
#include <exception>
#include <utility>

namespace kernwright::schedule {
namespace {

constexpr std::size_t kWordBytes = sizeof(std::uint32_t);
constexpr std::size_t kWorks = 64, kWorkWords = 2;

}  // namespace

YieldWords::YieldWords(const Stream& stream, std::shared_ptr<MemoryResource> resource,
                       YieldOrders& orders)
    : stream_(stream),
      orders_(orders),
      host_(stream.device(), kWordBytes),
      words_(std::move(resource), kWorks * kWorkWords * kWordBytes, stream),
      work_(kWorks - 1),
      end_(stream.device(), false) {}

YieldWords::~YieldWords() {
  if (stream_.device().lost()) return;
  try {
    orders_.fence(stream_);
    if (is_queued_) host_.use_on(stream_);
  } catch (const std::exception& error) {
    log_release_failure("words of a launch that yields", error.what());
  }
}

void YieldWords::clear(CUdeviceptr first, std::size_t count) {
  orders_.fence(stream_);
  Device& device = stream_.device();
  const ContextGuard guard(device);
  device.check(device.driver().cuMemsetD32Async(first, 0, count, stream_.handle()),
               "cuMemsetD32Async");
  // Orders overtake what is queued: none may be sent before the memory is ours and 0.
  end();
  const LaunchPause paused;
  end_.synchronize();
  is_queued_ = false;
}

void YieldWords::reset() {
  if (is_queued_ && !end_.done()) {
    const LaunchPause paused;
    end_.synchronize();
  }
  is_queued_ = false;
  std::atomic_ref(told_).store(0, std::memory_order_relaxed);
  if (work_ + 1 == kWorks) clear(words_.address(), kWorks * kWorkWords);
  work_ = (work_ + 1) % kWorks;
}

YieldAddresses YieldWords::addresses() const noexcept {
  const CUdeviceptr order = words_.address() + work_ * kWorkWords * kWordBytes;
  return {order, order + kWordBytes};
}

void YieldWords::clear() {
  if (std::atomic_ref(told_).load(std::memory_order_relaxed) == 0) return;
  clear(addresses().order, 1);
  std::atomic_ref(told_).store(0, std::memory_order_relaxed);
}

void YieldWords::end() {
  end_.record(stream_);
  is_queued_ = true;
}

bool YieldWords::has_yielded(std::uint64_t until) {
  if (std::atomic_ref(told_).load(std::memory_order_relaxed) == 0) return false;
  Device& device = stream_.device();
  const ContextGuard guard(device);
  auto* const next = static_cast<std::uint32_t*>(host_.data());
  device.check(
      device.driver().cuMemcpyDtoHAsync(next, addresses().next, kWordBytes, stream_.handle()),
      "cuMemcpyDtoHAsync");
  end();
  const LaunchPause paused;
  end_.synchronize();
  return *next < until;
}

}  // namespace kernwright::schedule
