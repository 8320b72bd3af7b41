// Owned bytes on a device, or page-locked bytes on the host.
#pragma once

#include "core/activity.h"
#include "core/launch/launch_site.h"
#include "memory/memory_resource.h"
#include "memory/pinned_buffer.h"
#include "memory/transfer.h"

#include <atomic>
#include <cstddef>
#include <memory>

namespace kernwright {

/// Owns device memory of `bytes` (0 is allowed: address 0). Moves, does not copy.
/// Freed in the order of the stream it was made on, after the work of every stream named to
/// use_on().
class Buffer {
 public:
  Buffer() noexcept;
  /// `site` is charged in reports when no AllocationSiteScope names another. Throws OutOfMemory,
  /// InvalidArgument for more than 2^63 - 1 bytes or a stream of another device.
  Buffer(std::shared_ptr<MemoryResource> resource, std::size_t bytes, Stream stream,
         const LaunchSite& site = LaunchSite::here());
  ~Buffer();
  Buffer(Buffer&& other) noexcept;
  Buffer& operator=(Buffer&& other) noexcept;
  Buffer(const Buffer&) = delete;
  Buffer& operator=(const Buffer&) = delete;

  CUdeviceptr address() const noexcept { return address_; }
  std::size_t bytes() const noexcept { return bytes_; }
  Device& device() const { return resource_->device(); }
  const Stream& stream() const noexcept { return stream_; }
  const std::shared_ptr<MemoryResource>& resource() const noexcept { return resource_; }

  /// Tells that work queued on `stream` until now uses the memory: it is not reused before the end
  /// of that work. Costs a comparison for the buffer's own stream, an entry in a list for the first
  /// use on another. A captured stream is not noted: a graph keeps its memory. Thread-safe.
  void use_on(const Stream& stream);

  /// Whether the graph of `capture` owns the memory, and `stream`, a part of the capture, is the
  /// buffer's own. Then work captured on it needs nobody to keep the buffer: it may be freed, and
  /// the memory used again, in the order of that stream.
  bool is_kept_by(Capture& capture, const Stream& stream) const;

  /// Frees the memory if it can without a call of the driver and without waiting for another
  /// thread; the buffer is empty then. Else returns false and changes nothing.
  bool try_release() noexcept;

  /// Makes the buffer's own stream wait for the uses on all other streams. The stream must not be
  /// captured.
  void order_after_users();

 private:
  struct Users;
  Users& users();
  bool wait_for_users() noexcept;
  bool defer_release() noexcept;
  void release() noexcept;
  void note_activity(Activity::Kind kind) const noexcept;

  std::shared_ptr<MemoryResource> resource_;
  Stream stream_;
  CUdeviceptr address_ = 0;
  std::size_t bytes_ = 0;
  std::atomic<Users*> users_ = nullptr;  ///< owned: streams of uses, beside stream_
};

}  // namespace kernwright
