// Where device memory comes from: the interface of every resource, and the plain ones.
#pragma once

#include "core/stream.h"
#include "driver/driver_api.h"

#include <cstddef>
#include <memory>

namespace kernwright {

class Device;

/// Stream-ordered allocation: memory is usable by work queued on `stream` after allocate(), and
/// deallocate() may be called while work queued before it on `stream` still uses the memory. An
/// empty stream is the device's legacy stream. Implementations are thread-safe. Sizes are bytes.
class MemoryResource {
 public:
  virtual ~MemoryResource() = default;
  /// Never called with 0 bytes. Aligned to at least 256. Throws OutOfMemory.
  virtual CUdeviceptr allocate(std::size_t bytes, const Stream& stream) = 0;
  /// Never throws; what the driver refuses is logged.
  virtual void deallocate(CUdeviceptr address, std::size_t bytes,
                          const Stream& stream) noexcept = 0;
  virtual Device& device() const = 0;
};

/// cuMemAlloc and cuMemFree: synchronous, no reuse.
class DeviceResource final : public MemoryResource {
 public:
  explicit DeviceResource(Device& device);
  CUdeviceptr allocate(std::size_t bytes, const Stream& stream) override;
  void deallocate(CUdeviceptr address, std::size_t bytes, const Stream& stream) noexcept override;
  Device& device() const override { return device_; }

 private:
  Device& device_;
};

/// cuMemAllocAsync and cuMemFreeAsync on the driver's default pool, with a release threshold that
/// keeps freed memory for reuse. Behaves as DeviceResource where the device has no pools. When the
/// driver is out of memory, the pool is trimmed and the allocation tried once more.
class AsyncResource final : public MemoryResource {
 public:
  explicit AsyncResource(Device& device);
  CUdeviceptr allocate(std::size_t bytes, const Stream& stream) override;
  void deallocate(CUdeviceptr address, std::size_t bytes, const Stream& stream) noexcept override;
  Device& device() const override { return device_; }
  /// Gives memory that is not in use back to the driver, down to `bytes_to_keep`.
  void trim(std::size_t bytes_to_keep = 0);

 private:
  Device& device_;
  CUmemoryPool pool_ = nullptr;  ///< the device's own, never destroyed; null without pools
};

/// The resource that arrays of `device` come from: an AsyncResource unless another one was set.
/// Process-wide.
std::shared_ptr<MemoryResource> default_resource(Device& device);

/// Makes `resource` the one that new arrays of `device` come from, null for the first one again;
/// what was allocated before stays with its own resource. Returns the resource used until now.
/// Throws InvalidArgument for a resource of another device.
std::shared_ptr<MemoryResource> set_default_resource(Device& device,
                                                     std::shared_ptr<MemoryResource> resource);

}  // namespace kernwright
