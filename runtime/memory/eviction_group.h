// Which evictable buffers may go to the host, and which of them first.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

namespace kernwright {

/// What an allocation that finds no memory may move to the host: content of the first class, then
/// of the second where its group has more on the device than it requested, never of the third.
enum class EvictionClass : std::uint8_t { best_effort, burstable, guaranteed };

/// Evictable buffers of one owner, such as a task: their class, and the bytes that may stay on the
/// device. Thread-safe.
class EvictionGroup {
 public:
  /// `request`: bytes; of no meaning but for `burstable`.
  explicit EvictionGroup(EvictionClass kind, std::size_t request = 0) noexcept
      : class_(kind), request_(request) {}
  EvictionGroup(const EvictionGroup&) = delete;
  EvictionGroup& operator=(const EvictionGroup&) = delete;

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

  std::atomic<EvictionClass> class_;
  std::atomic<std::size_t> request_;
  std::atomic<std::size_t> resident_{0};
};

}  // namespace kernwright
