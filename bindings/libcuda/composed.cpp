// Functions of the driver that others of its functions make up. The library has no need of them,
// programs have.
#include "libcuda/functions.h"
#include "libcuda/image_file.h"

#include "sim/device.h"

#include <limits>
#include <memory>
#include <string>

namespace kernwright::libcuda {
namespace {

using sim::driver_api;

/// Rows begin where a GPU's would: a multiple of this many bytes apart.
constexpr std::size_t kPitch = 512;

/// CUfunc_cache: which of shared memory and first-level cache is to be larger. A simulated device
/// has room for both.
enum class CacheConfig : int { none, shared, l1, equal };
CUresult check_config(CacheConfig config) {
  const bool known = config >= CacheConfig::none && config <= CacheConfig::equal;
  return known ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

/// PTX or a cubin in a file.
CUresult module_load(CUmodule* module, const char* path) {
  if (module == nullptr || path == nullptr) return CUDA_ERROR_INVALID_VALUE;
  std::string image;
  if (const CUresult result = read_image(path, image); result != CUDA_SUCCESS) return result;
  return driver_api().cuModuleLoadData(module, image.c_str());
}

/// From and to the host or the device; has ended when it returns.
CUresult copy(CUdeviceptr to, CUdeviceptr from, std::size_t bytes) {
  const DriverApi& api = driver_api();
  const CUresult result = api.cuMemcpyAsync(to, from, bytes, nullptr);
  return result != CUDA_SUCCESS ? result : api.cuStreamSynchronize(nullptr);
}

CUresult alloc_pitch(CUdeviceptr* address, std::size_t* pitch, std::size_t width,
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

CUresult launch_cooperative(CUfunction function, unsigned int grid_x, unsigned int grid_y,
                            unsigned int grid_z, unsigned int block_x, unsigned int block_y,
                            unsigned int block_z, unsigned int shared_bytes, CUstream stream,
                            void** parameters) {
  CUlaunchAttribute attribute{};
  attribute.id = CU_LAUNCH_ATTRIBUTE_COOPERATIVE;
  attribute.value.cooperative = 1;
  const CUlaunchConfig config{grid_x,  grid_y,       grid_z, block_x,    block_y,
                              block_z, shared_bytes, stream, &attribute, 1};
  return driver_api().cuLaunchKernelEx(&config, kernel_function(function), parameters, nullptr);
}

CUresult elapsed_time_2(float* milliseconds, CUevent start, CUevent end) {
  return driver_api().cuEventElapsedTime(milliseconds, start, end);
}

CUresult compute_capability(int* major, int* minor, CUdevice device) {
  const DriverApi& api = driver_api();
  const CUresult result =
      api.cuDeviceGetAttribute(major, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, device);
  if (result != CUDA_SUCCESS) return result;
  return api.cuDeviceGetAttribute(minor, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, device);
}

CUresult set_function_config(CUfunction function, CacheConfig config) {
  CUmodule module = nullptr;
  const CUresult result = driver_api().cuFuncGetModule(&module, kernel_function(function));
  return result != CUDA_SUCCESS ? result : check_config(config);
}

CUresult set_context_config(CacheConfig config) { return check_config(config); }

CUresult get_context_config(CacheConfig* config) {
  if (config == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *config = CacheConfig::none;
  return CUDA_SUCCESS;
}

/// A fat binary holds machine code: refused with advice.
CUresult module_load_fat_binary(CUmodule* module, const void* image) {
  return driver_api().cuModuleLoadData(module, image);
}

/// Functions are loaded with their module.
CUresult function_is_loaded(int* state, CUfunction function) {
  if (state == nullptr) return CUDA_ERROR_INVALID_VALUE;
  CUmodule module = nullptr;
  const CUresult result = driver_api().cuFuncGetModule(&module, kernel_function(function));
  if (result == CUDA_SUCCESS) *state = 1;  // CU_FUNCTION_LOADING_STATE_LOADED
  return result;
}
CUresult function_load(CUfunction function) {
  int state = 0;
  return function_is_loaded(&state, function);
}

CUresult function_parameter_count(CUfunction function, std::size_t* count) {
  if (count == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const DriverApi& api = driver_api();
  const CUfunction resolved = kernel_function(function);
  CUmodule module = nullptr;
  if (const CUresult result = api.cuFuncGetModule(&module, resolved); result != CUDA_SUCCESS)
    return result;
  std::size_t offset = 0;
  *count = 0;
  while (api.cuFuncGetParamInfo(resolved, *count, &offset, nullptr) == CUDA_SUCCESS) ++*count;
  return CUDA_SUCCESS;
}

CUresult potential_block_size(int* grid, int* block, CUfunction function, CUoccupancyB2DSize sizes,
                              std::size_t shared_bytes, int limit, unsigned int flags) {
  if (flags > 1) return CUDA_ERROR_INVALID_VALUE;  // CU_OCCUPANCY_DISABLE_CACHING_OVERRIDE
  return driver_api().cuOccupancyMaxPotentialBlockSize(grid, block, kernel_function(function),
                                                       sizes, shared_bytes, limit);
}

using StreamCallback = void (*)(CUstream stream, CUresult status, void* user_data);
struct Callback {
  StreamCallback function;
  CUstream stream;
  void* user_data;
};

/// Called once, when the stream's earlier work is done.
CUresult add_callback(CUstream stream, StreamCallback function, void* user_data,
                      unsigned int flags) {
  if (function == nullptr || flags != 0) return CUDA_ERROR_INVALID_VALUE;
  const DriverApi& api = driver_api();
  CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;
  if (const CUresult result = api.cuStreamIsCapturing(stream, &status); result != CUDA_SUCCESS)
    return result;
  if (status != CU_STREAM_CAPTURE_STATUS_NONE) return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
  auto callback = std::make_unique<Callback>(Callback{function, stream, user_data});
  const auto run = [](void* data) {
    const std::unique_ptr<Callback> owned_callback(static_cast<Callback*>(data));
    owned_callback->function(owned_callback->stream, CUDA_SUCCESS, owned_callback->user_data);
  };
  const CUresult result = api.cuLaunchHostFunc(stream, run, callback.get());
  if (result == CUDA_SUCCESS) static_cast<void>(callback.release());
  return result;
}

CUresult stream_get_device(CUstream stream, CUdevice* device) {
  const DriverApi& api = driver_api();
  CUcontext context = nullptr;
  if (device == nullptr) return CUDA_ERROR_INVALID_VALUE;
  CUresult result = api.cuStreamGetCtx(stream, &context);
  if (result == CUDA_SUCCESS) result = api.cuCtxPushCurrent(context);
  if (result != CUDA_SUCCESS) return result;
  result = api.cuCtxGetDevice(device);
  api.cuCtxPopCurrent(nullptr);
  return result;
}

CUresult stream_get_context_2(CUstream stream, CUcontext* context, CUgreenCtx* green) {
  if (context == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const CUresult result = driver_api().cuStreamGetGreenCtx(stream, green);
  return result == CUDA_SUCCESS ? driver_api().cuStreamGetCtx(stream, context) : result;
}

/// The host, or a device. Throws nothing: -2 for other places.
CUdevice device_at(CUmemLocation place) {
  if (place.type == CU_MEM_LOCATION_TYPE_DEVICE) return place.id;
  return place.type == CU_MEM_LOCATION_TYPE_HOST ? kDeviceCpu : -2;
}
CUresult advise_2(CUdeviceptr begin, std::size_t bytes, CUmem_advise advice, CUmemLocation place) {
  return driver_api().cuMemAdvise(begin, bytes, advice, device_at(place));
}
CUresult prefetch_2(CUdeviceptr begin, std::size_t bytes, CUmemLocation place, unsigned int flags,
                    CUstream stream) {
  if (flags != 0) return CUDA_ERROR_INVALID_VALUE;
  return driver_api().cuMemPrefetchAsync(begin, bytes, device_at(place), stream);
}

/// Nothing measures here but kernwright's own profilers.
CUresult do_nothing() { return CUDA_SUCCESS; }

}  // namespace

std::span<const Function> composed_functions() {
  static const Function rows[] = {
      provide<module_load>("cuModuleLoad", "cuModuleLoad", 2000),
      provide<module_load_fat_binary>("cuModuleLoadFatBinary", "cuModuleLoadFatBinary", 2000),
      provide<copy>("cuMemcpy", "cuMemcpy", 4000),
      provide<alloc_pitch>("cuMemAllocPitch", "cuMemAllocPitch_v2", 3020),
      provide<launch_cooperative>("cuLaunchCooperativeKernel", "cuLaunchCooperativeKernel", 9000),
      provide<elapsed_time_2>("cuEventElapsedTime", "cuEventElapsedTime_v2", 12080),
      provide<compute_capability>("cuDeviceComputeCapability", "cuDeviceComputeCapability", 2000),
      provide<set_function_config>("cuFuncSetCacheConfig", "cuFuncSetCacheConfig", 3000),
      provide<set_context_config>("cuCtxSetCacheConfig", "cuCtxSetCacheConfig", 3020),
      provide<get_context_config>("cuCtxGetCacheConfig", "cuCtxGetCacheConfig", 3020),
      provide<function_is_loaded>("cuFuncIsLoaded", "cuFuncIsLoaded", 12040),
      provide<function_load>("cuFuncLoad", "cuFuncLoad", 12040),
      provide<function_parameter_count>("cuFuncGetParamCount", "cuFuncGetParamCount", 13010),
      provide<potential_block_size>("cuOccupancyMaxPotentialBlockSizeWithFlags",
                                    "cuOccupancyMaxPotentialBlockSizeWithFlags", 7000),
      provide<add_callback>("cuStreamAddCallback", "cuStreamAddCallback", 5000),
      provide<stream_get_device>("cuStreamGetDevice", "cuStreamGetDevice", 12080),
      provide<stream_get_context_2>("cuStreamGetCtx", "cuStreamGetCtx_v2", 12050),
      provide<advise_2>("cuMemAdvise", "cuMemAdvise_v2", 12020),
      provide<prefetch_2>("cuMemPrefetchAsync", "cuMemPrefetchAsync_v2", 12020),
      provide<do_nothing>("cuProfilerStart", "cuProfilerStart", 4000),
      provide<do_nothing>("cuProfilerStop", "cuProfilerStop", 4000),
  };
  return rows;
}

}  // namespace kernwright::libcuda
