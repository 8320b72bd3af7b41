// Buffers: memory that frees itself in stream order.
#include "memory/buffer.h"

#include "base/errors.h"
#include "base/format.h"
#include "base/log.h"
#include "core/device.h"
#include "core/event.h"
#include "core/graph/capture.h"
#include "core/lifecycle.h"
#include "memory/allocation_site.h"

#include <cstdint>
#include <limits>
#include <mutex>
#include <optional>
#include <utility>
#include <vector>

namespace kernwright {
namespace {

/// Every device has a legacy stream of handle 0; an empty stream is the one of `device`.
bool is_same_stream(const Stream& a, const Stream& b, const Device& device) noexcept {
  if (a.handle() != b.handle() || a.handle() == kStreamPerThread) return false;
  if (a.handle() != nullptr) return true;
  return (a ? &a.device() : &device) == (b ? &b.device() : &device);
}

}  // namespace

struct Buffer::Users {
  struct User {
    Stream stream;
    /// For a borrowed stream: its work until the last use, since others may destroy the stream. Own
    /// streams are kept alive here, and queried only when the memory is freed.
    std::optional<Event> last_use;
  };
  std::mutex mutex;
  std::vector<User> list;
};

Buffer::Buffer() noexcept = default;

Buffer::Buffer(std::shared_ptr<MemoryResource> resource, std::size_t bytes, Stream stream,
               const LaunchSite& site)
    : resource_(std::move(resource)), stream_(std::move(stream)) {
  if (bytes > static_cast<std::size_t>(std::numeric_limits<std::int64_t>::max())) {
    throw InvalidArgument(format("a buffer of {} bytes: at most 2^63 - 1", bytes));
  }
  const AllocationSiteScope scope(site);
  if (bytes != 0) address_ = resource_->allocate(bytes, stream_);
  bytes_ = bytes;
  if (is_recording_activity()) [[unlikely]] {
    note_activity(Activity::Kind::allocation);
  }
}

void Buffer::note_activity(Activity::Kind kind) const noexcept {
  if (address_ == 0) return;
  record_activity({.kind = kind,
                   .name = kind == Activity::Kind::allocation ? "allocate" : "release",
                   .device = &device(),
                   .bytes = bytes_,
                   .address = address_,
                   .site = current_allocation_site()});
}

Buffer::~Buffer() { release(); }

Buffer::Buffer(Buffer&& other) noexcept
    : resource_(std::move(other.resource_)),
      stream_(std::move(other.stream_)),
      address_(std::exchange(other.address_, 0)),
      bytes_(std::exchange(other.bytes_, 0)),
      users_(other.users_.exchange(nullptr)) {}

Buffer& Buffer::operator=(Buffer&& other) noexcept {
  if (this == &other) return *this;
  release();
  resource_ = std::move(other.resource_);
  stream_ = std::move(other.stream_);
  address_ = std::exchange(other.address_, 0);
  bytes_ = std::exchange(other.bytes_, 0);
  users_ = other.users_.exchange(nullptr);
  return *this;
}

/// Most buffers never have any, so the list is made with the first.
Buffer::Users& Buffer::users() {
  Users* known = users_.load(std::memory_order_acquire);
  if (known != nullptr) return *known;
  auto made = std::make_unique<Users>();
  if (users_.compare_exchange_strong(known, made.get())) known = made.release();
  return *known;
}

void Buffer::use_on(const Stream& stream) {
  if (address_ == 0 || (!stream && !stream_)) return;  // the commonest case, without a look at them
  if (is_same_stream(stream, stream_, device())) return;
  const Stream user = stream ? stream : Stream::legacy(device());
  if (any_capture() && find_capture(user) != nullptr) return;
  Users& all = users();
  const std::lock_guard lock(all.mutex);
  Users::User* entry = nullptr;
  for (Users::User& known : all.list) {
    if (is_same_stream(known.stream, user, device())) entry = &known;
  }
  if (entry == nullptr) entry = &all.list.emplace_back(Users::User{user, std::nullopt});
  const bool may_vanish = user.handle() != nullptr && !user.is_owned();
  if (!may_vanish) return;
  if (!entry->last_use) entry->last_use.emplace(user.device(), false);
  entry->last_use->record(user);
}

bool Buffer::is_kept_by(Capture& capture, const Stream& stream) const {
  return address_ != 0 && is_same_stream(stream, stream_, device()) &&
         resource_->belongs_to(capture, address_);
}

void Buffer::order_after_users() {
  Users* const all = users_.load(std::memory_order_acquire);
  if (all == nullptr) return;
  const Stream owner = stream_ ? stream_ : Stream::legacy(device());
  const std::lock_guard lock(all->mutex);
  for (const Users::User& user : all->list) {
    owner.wait(user.last_use ? *user.last_use : user.stream.record());
  }
}

/// Makes the buffer's stream wait for the work of all other users, or the host when the driver
/// refuses; false when both fail.
bool Buffer::wait_for_users() noexcept {
  // In a forked child, at exit and on a lost device there is no running work to wait for.
  if (!may_call_driver() || device().lost()) return true;
  try {
    order_after_users();
    return true;
  } catch (const std::exception& error) {
    log_release_failure(format("buffer of {} bytes at {:#x}", bytes_, address_), error.what());
  }
  try {
    for (const Users::User& user : users_.load()->list) {
      user.last_use ? user.last_use->synchronize() : user.stream.synchronize();
    }
    return true;
  } catch (const std::exception&) {
    return device().lost();
  }
}

/// Streams cannot wait for each other across the border of a capture: when one of ours is captured,
/// the memory is freed at its end. False when none is.
bool Buffer::defer_release() noexcept {
  try {
    std::shared_ptr<Capture> capture = find_capture(stream_);
    for (const Users::User& user : users_.load()->list) {
      if (capture == nullptr) capture = find_capture(user.stream);
    }
    if (capture == nullptr) return false;
    const auto kept = std::make_shared<Buffer>();
    capture->at_end([kept] { kept->release(); });
    *kept = std::move(*this);
    return true;
  } catch (const std::exception&) {
    return false;  // what cannot wait for the end is freed, or leaked, at once
  }
}

bool Buffer::try_release() noexcept {
  // The last copy of a stream and of a resource ends with a call of the driver.
  const bool ends_alone = !stream_ && resource_.use_count() > 1;
  if (address_ == 0 || !ends_alone || users_.load() != nullptr || is_recording_activity() ||
      !resource_->try_release(address_, bytes_, stream_)) {
    return false;
  }
  address_ = 0;
  bytes_ = 0;
  return true;
}

void Buffer::release() noexcept {
  if (address_ != 0) {
    if (is_recording_activity()) [[unlikely]] {
      note_activity(Activity::Kind::release);
    }
    const bool has_users = users_.load() != nullptr;
    if (has_users && any_capture() && may_call_driver() && defer_release()) return;
    // A stream may still use the memory. A leak is better than a second owner.
    if (!has_users || wait_for_users()) resource_->deallocate(address_, bytes_, stream_);
  }
  address_ = 0;
  bytes_ = 0;
  delete users_.exchange(nullptr);
}

}  // namespace kernwright
