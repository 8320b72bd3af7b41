// Device memory whose content may move to the host while nobody uses it, and what moves first.
#pragma once

#include "memory/buffer.h"

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>

namespace kernwright {

/// What an allocation that finds no memory may move to the host: content of the first class, then
/// of the second where its group has more on the device than it requested, never of the third.
enum class EvictionClass : std::uint8_t { best_effort, burstable, guaranteed };

/// Evictable buffers of one owner, such as a task: their class, and the bytes that may stay on the
/// device. Thread-safe.
class EvictionGroup {
 public:
  /// `request`: bytes; of no meaning but for `burstable`. A group that is `whole` moves as one: its
  /// buffers without a pin follow the first.
  explicit EvictionGroup(EvictionClass kind, std::size_t request = 0, bool whole = false) noexcept
      : whole_(whole), class_(kind), request_(request) {}
  EvictionGroup(const EvictionGroup&) = delete;
  EvictionGroup& operator=(const EvictionGroup&) = delete;

  bool is_whole() const noexcept { return whole_; }
  EvictionClass eviction_class() const noexcept { return class_.load(std::memory_order_relaxed); }
  void set_class(EvictionClass kind) noexcept { class_.store(kind, std::memory_order_relaxed); }
  std::size_t request() const noexcept { return request_.load(std::memory_order_relaxed); }
  void set_request(std::size_t bytes) noexcept { request_.store(bytes, std::memory_order_relaxed); }
  /// Bytes of its buffers on the device.
  std::size_t resident() const noexcept { return resident_.load(std::memory_order_relaxed); }
  /// Whether a buffer of the group may be moved at this moment.
  bool is_evictable() const noexcept;

 private:
  friend class EvictableBuffer;
  void arrive(std::size_t bytes) noexcept { resident_.fetch_add(bytes, std::memory_order_relaxed); }
  void leave(std::size_t bytes) noexcept { resident_.fetch_sub(bytes, std::memory_order_relaxed); }

  const bool whole_;
  std::atomic<EvictionClass> class_;
  std::atomic<std::size_t> request_;
  std::atomic<std::size_t> resident_{0};
};

/// While it lives, evictable buffers that this thread makes without a group belong to `group`.
/// Scopes of a thread end in the reverse order of their beginning.
class EvictionScope {
 public:
  explicit EvictionScope(std::shared_ptr<EvictionGroup> group) noexcept;
  ~EvictionScope();
  EvictionScope(const EvictionScope&) = delete;
  EvictionScope& operator=(const EvictionScope&) = delete;

 private:
  std::shared_ptr<EvictionGroup> former_;
};

/// Owns memory that is on the device while it is pinned, and may be moved to the host otherwise.
/// When an allocation on the device finds no memory, buffers go by the class of their group, and
/// within a class those without a pin for longest go first. One that came back shortly before, in
/// the last few of such allocations, goes after the others of its class: two owners that take turns
/// do not send the same content back and forth while there is older content. The next pin()
/// restores the content, bit for bit. Thread-safe. Host memory for the content is taken when it
/// moves: page-locked, so that copies run at the speed of the bus, or pageable where there is none.
class EvictableBuffer {
 public:
  class Pin;

  /// Uninitialised memory; 0 bytes are allowed. A null group is that of the thread's
  /// EvictionScope, else one of `best_effort`. Throws what Buffer does.
  EvictableBuffer(std::shared_ptr<MemoryResource> resource, std::size_t bytes, Stream stream = {},
                  const LaunchSite& site = LaunchSite::here(),
                  std::shared_ptr<EvictionGroup> group = nullptr);
  ~EvictableBuffer();
  EvictableBuffer(const EvictableBuffer&) = delete;
  EvictableBuffer& operator=(const EvictableBuffer&) = delete;

  std::size_t bytes() const noexcept;
  Device& device() const;
  bool is_resident() const;  ///< on the device at this moment
  bool is_pinned() const;
  /// Null when it was made without one.
  const std::shared_ptr<EvictionGroup>& group() const noexcept;

  /// Keeps the content on the device until the Pin ends, and brings it there before. Returns when
  /// it is there: usable on every stream. Throws OutOfMemory, and what a copy throws; the content
  /// is then still on the host.
  Pin pin();
  /// Moves the content to the host now, whatever its group. False when it is pinned or there
  /// already.
  bool evict();

 private:
  struct State;
  class Queue;
  std::shared_ptr<State> state_;
};

/// Use of an EvictableBuffer: while it lives the content stays at address(). May outlive the
/// buffer. Name work queued on a stream to buffer().use_on(): a later eviction then waits for it.
/// Moves, does not copy.
class EvictableBuffer::Pin {
 public:
  Pin() = default;
  ~Pin();
  Pin(Pin&& other) noexcept = default;
  Pin& operator=(Pin&& other) noexcept;
  Pin(const Pin&) = delete;
  Pin& operator=(const Pin&) = delete;

  CUdeviceptr address() const noexcept { return buffer_ != nullptr ? buffer_->address() : 0; }
  /// The memory; null for an empty Pin.
  const std::shared_ptr<Buffer>& buffer() const noexcept { return buffer_; }

 private:
  friend class EvictableBuffer;
  Pin(std::shared_ptr<State> state, std::shared_ptr<Buffer> buffer)
      : state_(std::move(state)), buffer_(std::move(buffer)) {}
  void release() noexcept;

  std::shared_ptr<State> state_;
  std::shared_ptr<Buffer> buffer_;
};

}  // namespace kernwright
