// Owned page-locked host memory, reused through a pool.
#pragma once

#include "core/launch/launch_site.h"
#include "memory/memory_resource.h"

#include <cstddef>
#include <memory>

namespace kernwright {

class Event;

/// Page-locked host memory, usable by every context. Moves, does not copy. Its memory is reused by
/// later buffers, once the work of every stream named to use_on() is done.
class PinnedBuffer {
 public:
  PinnedBuffer() noexcept;
  /// From pinned_resource(device); 0 bytes are allowed. Throws OutOfMemory, InvalidArgument.
  PinnedBuffer(Device& device, std::size_t bytes, const LaunchSite& site = LaunchSite::here());
  ~PinnedBuffer();
  PinnedBuffer(PinnedBuffer&& other) noexcept;
  PinnedBuffer& operator=(PinnedBuffer&& other) noexcept;
  PinnedBuffer(const PinnedBuffer&) = delete;
  PinnedBuffer& operator=(const PinnedBuffer&) = delete;

  void* data() const noexcept { return data_; }
  std::size_t bytes() const noexcept { return bytes_; }

  /// Tells that work queued on `stream` until now (a copy) uses the memory: it is not reused before
  /// the end of that work. An empty stream is the legacy one. Not thread-safe.
  void use_on(const Stream& stream);

 private:
  struct Uses;
  void release() noexcept;

  std::shared_ptr<MemoryResource> resource_;
  void* data_ = nullptr;
  std::size_t bytes_ = 0;
  std::unique_ptr<Uses> uses_;
};

}  // namespace kernwright
