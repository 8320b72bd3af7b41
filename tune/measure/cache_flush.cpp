// The flush: a reset of persisting lines and a fill.
#include "tune/measure/cache_flush.h"

#include "core/device.h"
#include "memory/transfer.h"

namespace kernwright {
namespace {

std::size_t l2_bytes(const Device& device) {
  return static_cast<std::size_t>(device.attribute(CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE));
}

}  // namespace

CacheFlush::CacheFlush(Device& device, const Stream& stream)
    : device_(device), memory_(default_resource(device), l2_bytes(device), stream) {}

void CacheFlush::queue(const Stream& stream) {
  {
    const ContextGuard guard(device_);
    const CUresult result = device_.driver().cuCtxResetPersistingL2Cache();
    // Without the function, or on a GPU before 8.0, no line persists.
    if (result != CUDA_ERROR_NOT_SUPPORTED) device_.check(result, "cuCtxResetPersistingL2Cache");
  }
  fill(device_, memory_.address(), 0, 1, memory_.bytes(), stream);
}

}  // namespace kernwright
