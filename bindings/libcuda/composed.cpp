// Functions of the driver that others of its functions make up. The library has no need of them,
// programs have.
#include "libcuda/composed.h"

#include "sim/device.h"

#include <fstream>
#include <limits>
#include <sstream>
#include <string>

using namespace kernwright;
using sim::driver_api;

namespace {

/// Rows begin where a GPU's would: a multiple of this many bytes apart.
constexpr std::size_t kPitch = 512;

/// CUfunc_cache: which of shared memory and first-level cache is to be larger. A simulated device
/// has room for both.
enum class CacheConfig : int { none, shared, l1, equal };
CUresult check_config(CacheConfig config) {
  const bool known = config >= CacheConfig::none && config <= CacheConfig::equal;
  return known ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

}  // namespace

#pragma GCC visibility push(default)
extern "C" {

/// PTX or a cubin in a file.
CUresult cuModuleLoad(CUmodule* module, const char* path) {
  if (module == nullptr || path == nullptr) return CUDA_ERROR_INVALID_VALUE;
  std::ifstream file(path, std::ios::binary);
  if (!file) return CUDA_ERROR_FILE_NOT_FOUND;
  std::ostringstream image;
  if (!(image << file.rdbuf())) return CUDA_ERROR_INVALID_IMAGE;  // empty, or a folder
  return driver_api().cuModuleLoadData(module, image.str().c_str());
}

/// From and to the host or the device; has ended when it returns.
CUresult cuMemcpy(CUdeviceptr to, CUdeviceptr from, std::size_t bytes) {
  const DriverApi& api = driver_api();
  const CUresult result = api.cuMemcpyAsync(to, from, bytes, nullptr);
  return result != CUDA_SUCCESS ? result : api.cuStreamSynchronize(nullptr);
}

CUresult cuMemAllocPitch_v2(CUdeviceptr* address, std::size_t* pitch, std::size_t width,
                            std::size_t height, unsigned int element_bytes) {
  const bool is_element = element_bytes == 4 || element_bytes == 8 || element_bytes == 16;
  if (address == nullptr || pitch == nullptr || width == 0 || height == 0 || !is_element)
    return CUDA_ERROR_INVALID_VALUE;
  constexpr std::size_t kMost = std::numeric_limits<std::size_t>::max();
  if (width > kMost - kPitch || (width + kPitch) > kMost / height) return CUDA_ERROR_OUT_OF_MEMORY;
  const std::size_t row = (width + kPitch - 1) / kPitch * kPitch;
  const CUresult result = driver_api().cuMemAlloc(address, row * height);
  if (result == CUDA_SUCCESS) *pitch = row;
  return result;
}

CUresult cuLaunchCooperativeKernel(CUfunction function, unsigned int grid_x, unsigned int grid_y,
                                   unsigned int grid_z, unsigned int block_x, unsigned int block_y,
                                   unsigned int block_z, unsigned int shared_bytes, CUstream stream,
                                   void** parameters) {
  CUlaunchAttribute attribute{};
  attribute.id = CU_LAUNCH_ATTRIBUTE_COOPERATIVE;
  attribute.value.cooperative = 1;
  const CUlaunchConfig config{grid_x,  grid_y,       grid_z, block_x,    block_y,
                              block_z, shared_bytes, stream, &attribute, 1};
  return driver_api().cuLaunchKernelEx(&config, function, parameters, nullptr);
}

CUresult cuEventElapsedTime_v2(float* milliseconds, CUevent start, CUevent end) {
  return driver_api().cuEventElapsedTime(milliseconds, start, end);
}

CUresult cuDeviceComputeCapability(int* major, int* minor, CUdevice device) {
  const DriverApi& api = driver_api();
  const CUresult result =
      api.cuDeviceGetAttribute(major, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, device);
  if (result != CUDA_SUCCESS) return result;
  return api.cuDeviceGetAttribute(minor, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, device);
}

CUresult cuFuncSetCacheConfig(CUfunction function, CacheConfig config) {
  CUmodule module = nullptr;
  const CUresult result = driver_api().cuFuncGetModule(&module, function);
  return result != CUDA_SUCCESS ? result : check_config(config);
}

CUresult cuCtxSetCacheConfig(CacheConfig config) { return check_config(config); }

CUresult cuCtxGetCacheConfig(CacheConfig* config) {
  if (config == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *config = CacheConfig::none;
  return CUDA_SUCCESS;
}

}  // extern "C"
#pragma GCC visibility pop

namespace kernwright::libcuda {

const std::vector<Versioned>& composed_functions() {
  static const std::vector<Versioned> all = {
      {"cuModuleLoad", 2000, address(cuModuleLoad)},
      {"cuMemcpy", 4000, address(cuMemcpy)},
      {"cuMemAllocPitch", 3020, address(cuMemAllocPitch_v2)},
      {"cuLaunchCooperativeKernel", 9000, address(cuLaunchCooperativeKernel)},
      {"cuEventElapsedTime", 12080, address(cuEventElapsedTime_v2)},
      {"cuDeviceComputeCapability", 2000, address(cuDeviceComputeCapability)},
      {"cuFuncSetCacheConfig", 3000, address(cuFuncSetCacheConfig)},
      {"cuCtxSetCacheConfig", 3020, address(cuCtxSetCacheConfig)},
      {"cuCtxGetCacheConfig", 3020, address(cuCtxGetCacheConfig)},
  };
  return all;
}

}  // namespace kernwright::libcuda
