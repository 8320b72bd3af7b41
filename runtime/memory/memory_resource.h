// Where device memory comes from: the interface of every resource, and the plain ones.
#pragma once

#include "core/stream.h"
#include "driver/driver_api.h"

#include <cstddef>
#include <memory>

namespace kernwright {

class Device;

/// Stream-ordered allocation: memory is usable by work queued on `stream` after allocate(), and
/// deallocate() may be called while work queued before it on `stream` still uses the memory.
/// Implementations are thread-safe. Sizes are bytes.
class MemoryResource {
 public:
  virtual ~MemoryResource() = default;
  /// Never called with 0 bytes. Aligned to at least 256. Throws OutOfMemory.
  virtual CUdeviceptr allocate(std::size_t bytes, const Stream& stream) = 0;
  /// Never throws; what the driver refuses is logged.
  virtual void deallocate(CUdeviceptr address, std::size_t bytes, const Stream& stream) noexcept = 0;
  virtual Device& device() const = 0;
};

/// cuMemAlloc and cuMemFree: synchronous, no reuse.
class DeviceResource final : public MemoryResource {
 public:
  explicit DeviceResource(Device& device) : device_(device) {}
  CUdeviceptr allocate(std::size_t bytes, const Stream& stream) override;
  void deallocate(CUdeviceptr address, std::size_t bytes, const Stream& stream) noexcept override;
  Device& device() const override { return device_; }

 private:
  Device& device_;
};

/// cuMemAllocAsync and cuMemFreeAsync on the driver's default pool, with a release threshold that
/// keeps freed memory for reuse. Falls back to DeviceResource where the device has no pools.
class AsyncResource final : public MemoryResource {
 public:
  explicit AsyncResource(Device& device);
  CUdeviceptr allocate(std::size_t bytes, const Stream& stream) override;
  void deallocate(CUdeviceptr address, std::size_t bytes, const Stream& stream) noexcept override;
  Device& device() const override { return device_; }

 private:
  Device& device_;
};

/// The resource that arrays of `device` come from: AsyncResource where supported. Process-wide.
std::shared_ptr<MemoryResource> default_resource(Device& device);

}  // namespace kernwright
