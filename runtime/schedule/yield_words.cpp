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
constexpr std::size_t kCounters = 64;

}  // namespace

YieldWords::YieldWords(const Stream& stream, std::shared_ptr<MemoryResource> resource)
    : stream_(stream),
      host_(stream.device(), 2 * kWordBytes),
      counters_(std::move(resource), kCounters * kWordBytes, stream),
      work_(kCounters - 1),
      end_(stream.device(), false) {
  clear();
}

YieldWords::~YieldWords() {
  if (!is_queued_ || stream_.device().lost()) return;
  try {
    host_.use_on(stream_);
  } catch (const std::exception& error) {
    log_release_failure("words of a launch that yields", error.what());
  }
}

void YieldWords::reset() {
  if (is_queued_ && !end_.done()) {
    const LaunchPause paused;
    end_.synchronize();
  }
  is_queued_ = false;
  if (++work_ < kCounters) return;
  work_ = 0;
  Device& device = stream_.device();
  const ContextGuard guard(device);
  device.check(
      device.driver().cuMemsetD32Async(counters_.address(), 0, kCounters, stream_.handle()),
      "cuMemsetD32Async");
}

YieldAddresses YieldWords::addresses() const noexcept {
  return {reinterpret_cast<CUdeviceptr>(order()), counters_.address() + work_ * kWordBytes};
}

void YieldWords::clear() noexcept { std::atomic_ref(*order()).store(0, std::memory_order_relaxed); }

void YieldWords::end() {
  end_.record(stream_);
  is_queued_ = true;
}

bool YieldWords::has_yielded(std::uint64_t until) {
  if (std::atomic_ref(*order()).load(std::memory_order_relaxed) == 0) return false;
  Device& device = stream_.device();
  const ContextGuard guard(device);
  std::uint32_t* const next = order() + 1;
  device.check(
      device.driver().cuMemcpyDtoHAsync(next, addresses().next, kWordBytes, stream_.handle()),
      "cuMemcpyDtoHAsync");
  end();
  const LaunchPause paused;
  end_.synchronize();
  return *next < until;
}

}  // namespace kernwright::schedule
