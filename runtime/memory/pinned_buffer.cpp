// Page-locked buffers, and the list of those still in use by a device.
#include "memory/pinned_buffer.h"

#include "base/errors.h"
#include "base/format.h"
#include "base/log.h"
#include "core/device.h"
#include "core/event.h"
#include "core/lifecycle.h"
#include "memory/allocation_site.h"
#include "memory/pinned_resource.h"

#include <algorithm>
#include <limits>
#include <mutex>
#include <utility>
#include <vector>

namespace kernwright {

struct PinnedBuffer::Uses {
  struct Use {
    Stream stream;
    Event last;
  };
  std::vector<Use> list;
};

namespace {

/// Memory without an owner, perhaps still read or written by the device.
struct Pending {
  std::shared_ptr<MemoryResource> resource;
  void* data;
  std::size_t bytes;
  std::vector<Event> events;
};

struct PendingList {
  std::mutex mutex;
  std::vector<Pending> list;
};

PendingList& pending() {
  static auto* const instance = new PendingList;  // leaked on purpose, with its buffers
  return *instance;
}

bool is_done(const Pending& entry) noexcept {
  try {
    return std::all_of(entry.events.begin(), entry.events.end(),
                       [](const Event& event) { return event.done(); });
  } catch (const std::exception&) {
    return false;  // the device is lost, or a capture forbids to ask
  }
}

void free_host(MemoryResource& resource, void* data, std::size_t bytes) noexcept {
  resource.deallocate(reinterpret_cast<CUdeviceptr>(data), bytes, {});
}

/// Frees the buffers without pending work.
void free_done() noexcept {
  if (!may_call_driver()) return;
  PendingList& all = pending();
  const std::lock_guard lock(all.mutex);
  std::erase_if(all.list, [](Pending& entry) {
    if (!is_done(entry)) return false;
    free_host(*entry.resource, entry.data, entry.bytes);
    return true;
  });
}

}  // namespace

PinnedBuffer::PinnedBuffer() noexcept = default;

PinnedBuffer::PinnedBuffer(Device& device, std::size_t bytes, const LaunchSite& site) {
  if (bytes > static_cast<std::size_t>(std::numeric_limits<std::int64_t>::max())) {
    throw InvalidArgument(format("a pinned buffer of {} bytes: at most 2^63 - 1", bytes));
  }
  if (bytes == 0) return;
  free_done();
  resource_ = pinned_resource(device);
  const AllocationSiteScope scope(site);
  data_ = reinterpret_cast<void*>(resource_->allocate(bytes, {}));
  bytes_ = bytes;
}

PinnedBuffer::~PinnedBuffer() { release(); }

PinnedBuffer::PinnedBuffer(PinnedBuffer&& other) noexcept
    : resource_(std::move(other.resource_)),
      data_(std::exchange(other.data_, nullptr)),
      bytes_(std::exchange(other.bytes_, 0)),
      uses_(std::move(other.uses_)) {}

PinnedBuffer& PinnedBuffer::operator=(PinnedBuffer&& other) noexcept {
  if (this == &other) return *this;
  release();
  resource_ = std::move(other.resource_);
  data_ = std::exchange(other.data_, nullptr);
  bytes_ = std::exchange(other.bytes_, 0);
  uses_ = std::move(other.uses_);
  return *this;
}

void PinnedBuffer::use_on(const Stream& stream) {
  if (data_ == nullptr) return;
  if (uses_ == nullptr) uses_ = std::make_unique<Uses>();
  const Stream user = stream ? stream : Stream::legacy(resource_->device());
  for (Uses::Use& known : uses_->list) {
    if (known.stream.id() == user.id() && user.handle() != kStreamPerThread) {
      return known.last.record(user);
    }
  }
  Event event(user.device(), false);
  event.record(user);
  uses_->list.push_back({user, std::move(event)});
}

void PinnedBuffer::release() noexcept {
  if (data_ == nullptr) return;
  void* const data = std::exchange(data_, nullptr);
  const std::size_t bytes = std::exchange(bytes_, 0);
  const std::unique_ptr<Uses> uses = std::move(uses_);
  if (uses == nullptr) return free_host(*resource_, data, bytes);
  try {
    Pending entry{resource_, data, bytes, {}};
    for (const Uses::Use& use : uses->list) entry.events.push_back(use.last);
    const std::lock_guard lock(pending().mutex);
    pending().list.push_back(std::move(entry));
  } catch (const std::exception& error) {
    // The device may still use the memory. A leak is better than a second owner.
    log_release_failure(format("pinned buffer of {} bytes", bytes), error.what());
  }
  free_done();
}

}  // namespace kernwright
