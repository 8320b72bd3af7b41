// Page-locked host memory, for copies to and from a device at full speed.
#pragma once

#include "memory/memory_resource.h"

namespace kernwright {

/// cuMemHostAlloc, portable: usable by every context, at the same address on host and device.
class PinnedResource final : public DriverResource {
 public:
  using DriverResource::DriverResource;
  std::string name() const override { return "PinnedResource"; }
  bool is_synchronous() const noexcept override { return true; }
  bool is_host_accessible() const noexcept override { return true; }

 private:
  CUresult take(CUdeviceptr& address, std::size_t bytes, const Stream& stream,
                const char*& call) override;
  CUresult give(CUdeviceptr address, const Stream& stream, const char*& call) noexcept override;
  MemoryStats use_of_device(std::uint64_t free, std::uint64_t total) const override;
};

/// The pool of PinnedBuffer and of Python's pinned arrays: one for each device, never destroyed.
std::shared_ptr<MemoryResource> pinned_resource(Device& device);

}  // namespace kernwright
