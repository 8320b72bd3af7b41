// Owned bytes on a device, or page-locked bytes on the host.
#pragma once

#include "memory/memory_resource.h"

#include <cstddef>
#include <memory>

namespace kernwright {

/// Owns device memory of `bytes` (0 is allowed: address 0). Moves, does not copy.
/// Freed in the order of the stream it was made on.
class Buffer {
 public:
  Buffer() = default;
  Buffer(std::shared_ptr<MemoryResource> resource, std::size_t bytes, Stream stream);
  ~Buffer();
  Buffer(Buffer&& other) noexcept;
  Buffer& operator=(Buffer&& other) noexcept;
  Buffer(const Buffer&) = delete;
  Buffer& operator=(const Buffer&) = delete;

  CUdeviceptr address() const noexcept { return address_; }
  std::size_t bytes() const noexcept { return bytes_; }
  Device& device() const { return resource_->device(); }

 private:
  std::shared_ptr<MemoryResource> resource_;
  Stream stream_;
  CUdeviceptr address_ = 0;
  std::size_t bytes_ = 0;
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
  Device* device_ = nullptr;
  void* data_ = nullptr;
  std::size_t bytes_ = 0;
};

/// Copies of plain bytes, checked and with the device's context current. With an empty `stream`
/// the call returns when the copy is done; else it is queued (pageable host memory may still block).
void copy_to_device(Device& device, CUdeviceptr to, const void* from, std::size_t bytes,
                    const Stream& stream = {});
void copy_to_host(Device& device, void* to, CUdeviceptr from, std::size_t bytes,
                  const Stream& stream = {});
void copy_on_device(Device& device, CUdeviceptr to, CUdeviceptr from, std::size_t bytes,
                    const Stream& stream = {});
/// Fills `count` elements of 1, 2, 4 or 8 bytes with `pattern`.
void fill(Device& device, CUdeviceptr to, std::uint64_t pattern, std::size_t element_size,
          std::size_t count, const Stream& stream = {});

}  // namespace kernwright
