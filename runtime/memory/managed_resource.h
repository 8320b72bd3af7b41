// Managed memory: one address for host and device, and pages that move to where they are used.
#pragma once

#include "memory/memory_resource.h"

namespace kernwright {

/// cuMemAllocManaged, attached to every stream. Synchronous, no reuse; may be larger than the
/// device's memory.
class ManagedResource final : public DriverResource {
 public:
  using DriverResource::DriverResource;
  std::string name() const override { return "ManagedResource"; }
  bool is_synchronous() const noexcept override { return true; }
  bool is_host_accessible() const noexcept override { return true; }

 private:
  CUresult take(CUdeviceptr& address, std::size_t bytes, const Stream& stream,
                const char*& call) override;
  CUresult give(CUdeviceptr address, const Stream& stream, const char*& call) noexcept override;
};

}  // namespace kernwright
