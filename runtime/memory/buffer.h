// Owned bytes on a device, or page-locked bytes on the host.
#pragma once

#include "memory/memory_resource.h"
#include "memory/transfer.h"

#include <cstddef>
#include <memory>

namespace kernwright {

/// Owns device memory of `bytes` (0 is allowed: address 0). Moves, does not copy.
/// Freed in the order of the stream it was made on, after the work of every stream named to
/// use_on().
class Buffer {
 public:
  Buffer() noexcept;
  /// Throws OutOfMemory, InvalidArgument for more than 2^63 bytes or a stream of another device.
  Buffer(std::shared_ptr<MemoryResource> resource, std::size_t bytes, Stream stream);
  ~Buffer();
  Buffer(Buffer&& other) noexcept;
  Buffer& operator=(Buffer&& other) noexcept;
  Buffer(const Buffer&) = delete;
  Buffer& operator=(const Buffer&) = delete;

  CUdeviceptr address() const noexcept { return address_; }
  std::size_t bytes() const noexcept { return bytes_; }
  Device& device() const { return resource_->device(); }
  const Stream& stream() const noexcept { return stream_; }

  /// Says that work queued on `stream` until now uses the memory: it is not reused before that work
  /// is done. Costs a comparison for the buffer's own stream, an entry in a list for the first use
  /// on another. Thread-safe.
  void use_on(const Stream& stream);

 private:
  struct Users;
  bool wait_for_users() noexcept;
  void release() noexcept;

  std::shared_ptr<MemoryResource> resource_;
  Stream stream_;
  CUdeviceptr address_ = 0;
  std::size_t bytes_ = 0;
  std::unique_ptr<Users> users_;  ///< streams beside stream_ that used the memory
};

/// Page-locked host memory (cuMemHostAlloc), usable by every context. Moves, does not copy.
class PinnedBuffer {
 public:
  PinnedBuffer() = default;
  PinnedBuffer(Device& device, std::size_t bytes);
  ~PinnedBuffer();
  PinnedBuffer(PinnedBuffer&& other) noexcept;
  PinnedBuffer& operator=(PinnedBuffer&& other) noexcept;
  PinnedBuffer(const PinnedBuffer&) = delete;
  PinnedBuffer& operator=(const PinnedBuffer&) = delete;

  void* data() const noexcept { return data_; }
  std::size_t bytes() const noexcept { return bytes_; }

 private:
  void release() noexcept;

  Device* device_ = nullptr;
  void* data_ = nullptr;
  std::size_t bytes_ = 0;
};

}  // namespace kernwright
