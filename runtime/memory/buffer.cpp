// Buffers: memory that frees itself in stream order, and page-locked host memory.
#include "memory/buffer.h"

#include "base/errors.h"
#include "base/format.h"
#include "base/log.h"
#include "core/device.h"
#include "core/event.h"
#include "core/lifecycle.h"

#include <cstdint>
#include <limits>
#include <mutex>
#include <optional>
#include <utility>
#include <vector>

namespace kernwright {
namespace {

bool is_same_stream(const Stream& a, const Stream& b) noexcept {
  return a.handle() == b.handle() && a.handle() != kStreamPerThread;
}

}  // namespace

struct Buffer::Users {
  struct User {
    Stream stream;
    /// For a stream that somebody else may destroy: where its work stood at the last use. Streams
    /// of our own are kept alive here, and asked only when the memory is freed.
    std::optional<Event> last_use;
  };
  std::mutex mutex;
  std::vector<User> list;
};

Buffer::Buffer() noexcept = default;

Buffer::Buffer(std::shared_ptr<MemoryResource> resource, std::size_t bytes, Stream stream)
    : resource_(std::move(resource)),
      stream_(std::move(stream)),
      users_(std::make_unique<Users>()) {
  if (bytes > static_cast<std::size_t>(std::numeric_limits<std::int64_t>::max())) {
    throw InvalidArgument(format("a buffer of {} bytes: at most 2^63 - 1", bytes));
  }
  if (bytes != 0) address_ = resource_->allocate(bytes, stream_);
  bytes_ = bytes;
}

Buffer::~Buffer() { release(); }

Buffer::Buffer(Buffer&& other) noexcept
    : resource_(std::move(other.resource_)),
      stream_(std::move(other.stream_)),
      address_(std::exchange(other.address_, 0)),
      bytes_(std::exchange(other.bytes_, 0)),
      users_(std::move(other.users_)) {}

Buffer& Buffer::operator=(Buffer&& other) noexcept {
  if (this == &other) return *this;
  release();
  resource_ = std::move(other.resource_);
  stream_ = std::move(other.stream_);
  address_ = std::exchange(other.address_, 0);
  bytes_ = std::exchange(other.bytes_, 0);
  users_ = std::move(other.users_);
  return *this;
}

void Buffer::use_on(const Stream& stream) {
  if (address_ == 0 || is_same_stream(stream, stream_)) return;
  const Stream user = stream ? stream : Stream::legacy(device());
  const std::lock_guard lock(users_->mutex);
  Users::User* entry = nullptr;
  for (Users::User& known : users_->list) {
    if (is_same_stream(known.stream, user)) entry = &known;
  }
  if (entry == nullptr) entry = &users_->list.emplace_back(Users::User{user, std::nullopt});
  const bool may_vanish = user.handle() != nullptr && !user.is_owned();
  if (!may_vanish) return;
  if (!entry->last_use) entry->last_use.emplace(user.device(), false);
  entry->last_use->record(user);
}

/// Makes the buffer's stream wait for all others that used the memory, or the host when the driver
/// refuses that; false when nothing helped.
bool Buffer::wait_for_users() noexcept {
  // In a forked child, at exit and on a lost device nothing runs any more that could be waited for.
  if (users_->list.empty() || !may_call_driver() || device().lost()) return true;
  try {
    const Stream owner = stream_ ? stream_ : Stream::legacy(device());
    for (Users::User& user : users_->list) {
      owner.wait(user.last_use ? *user.last_use : user.stream.record());
    }
    return true;
  } catch (const std::exception& error) {
    log_release_failure(format("buffer of {} bytes at {:#x}", bytes_, address_), error.what());
  }
  try {
    for (const Users::User& user : users_->list) {
      user.last_use ? user.last_use->synchronize() : user.stream.synchronize();
    }
    return true;
  } catch (const std::exception&) {
    return device().lost();
  }
}

void Buffer::release() noexcept {
  if (address_ == 0) return;
  // Memory that a stream may still use must not be handed out again: leaking it is the lesser evil.
  if (wait_for_users()) resource_->deallocate(address_, bytes_, stream_);
  address_ = 0;
  bytes_ = 0;
}

PinnedBuffer::PinnedBuffer(Device& device, std::size_t bytes) : device_(&device) {
  if (bytes == 0) return;
  const ContextGuard guard(device);
  const CUresult result = device.driver().cuMemHostAlloc(&data_, bytes, kMemHostAllocPortable);
  if (result == CUDA_ERROR_OUT_OF_MEMORY) {
    throw OutOfMemory(format("{}: no page-locked host memory of {} bytes: the host is short of "
                             "memory, or a limit on locked memory is reached",
                             device.identify(), bytes),
                      bytes, 0, 0, 0);
  }
  device.check(result, "cuMemHostAlloc");
  bytes_ = bytes;
}

PinnedBuffer::~PinnedBuffer() { release(); }

PinnedBuffer::PinnedBuffer(PinnedBuffer&& other) noexcept
    : device_(other.device_),
      data_(std::exchange(other.data_, nullptr)),
      bytes_(std::exchange(other.bytes_, 0)) {}

PinnedBuffer& PinnedBuffer::operator=(PinnedBuffer&& other) noexcept {
  if (this == &other) return *this;
  release();
  device_ = other.device_;
  data_ = std::exchange(other.data_, nullptr);
  bytes_ = std::exchange(other.bytes_, 0);
  return *this;
}

void PinnedBuffer::release() noexcept {
  if (data_ == nullptr) return;
  ReleaseGuard guard(*device_);
  if (guard) guard.report(device_->driver().cuMemFreeHost(data_), "cuMemFreeHost");
  data_ = nullptr;
  bytes_ = 0;
}

}  // namespace kernwright
