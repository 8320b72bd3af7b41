// Managed memory from the driver.
#include "memory/managed_resource.h"

#include "core/device.h"

namespace kernwright {

CUresult ManagedResource::take(CUdeviceptr& address, std::size_t bytes, const Stream&,
                               const char*& call) {
  call = "cuMemAllocManaged";
  return device_.driver().cuMemAllocManaged(&address, bytes, CU_MEM_ATTACH_GLOBAL);
}

CUresult ManagedResource::give(CUdeviceptr address, const Stream&, const char*& call) noexcept {
  call = "cuMemFree";
  return device_.driver().cuMemFree(address);
}

}  // namespace kernwright
