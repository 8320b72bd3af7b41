// Contexts made by a program for itself.
#include "libcuda/functions.h"

#include "sim/device.h"

#include <array>
#include <cstddef>

namespace kernwright::libcuda {
namespace {

using sim::driver_api;

/// CUctxCreateParams.
struct CreateParameters {
  void* affinity = nullptr;
  int affinity_count = 0;
  void* graphics = nullptr;
};

/// A device has one context here: made by whoever asks first, gone when all have destroyed theirs.
CUresult create(CUcontext* context, CUdevice device) {
  if (context == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const CUresult retained = driver_api().cuDevicePrimaryCtxRetain(context, device);
  return retained != CUDA_SUCCESS ? retained : driver_api().cuCtxPushCurrent(*context);
}

CUresult create_2(CUcontext* context, unsigned int, CUdevice device) {
  return create(context, device);
}

/// With execution affinity; simulated devices have none.
CUresult create_3(CUcontext* context, void* affinity, int count, unsigned int, CUdevice device) {
  if (affinity != nullptr || count != 0) return CUDA_ERROR_UNSUPPORTED_EXEC_AFFINITY;
  return create(context, device);
}

/// With parameters, all optional: affinity, or a graphics context's; neither is there.
CUresult create_4(CUcontext* context, const CreateParameters* parameters, unsigned int,
                  CUdevice device) {
  if (parameters == nullptr) return create(context, device);
  if (parameters->graphics != nullptr) return CUDA_ERROR_NOT_SUPPORTED;
  return create_3(context, parameters->affinity, parameters->affinity_count, 0, device);
}

/// Device of a context. Only the current context tells it: another becomes current for a moment.
CUresult context_device(CUcontext context, CUdevice* device) {
  const DriverApi& api = driver_api();
  if (context == nullptr) return api.cuCtxGetDevice(device);
  if (const CUresult result = api.cuCtxPushCurrent(context); result != CUDA_SUCCESS) return result;
  const CUresult found = api.cuCtxGetDevice(device);
  api.cuCtxPopCurrent(nullptr);
  return found;
}

CUresult destroy(CUcontext context) {
  const DriverApi& api = driver_api();
  if (context == nullptr) return CUDA_ERROR_INVALID_VALUE;
  CUcontext current = nullptr;
  CUdevice device = 0;
  if (const CUresult result = api.cuCtxGetCurrent(&current); result != CUDA_SUCCESS) return result;
  if (const CUresult found = context_device(context, &device); found != CUDA_SUCCESS) return found;
  if (current == context) api.cuCtxPopCurrent(nullptr);
  return api.cuDevicePrimaryCtxRelease(device);
}

/// The current context is used once more, until it is detached from or destroyed.
CUresult attach(CUcontext* context, unsigned int flags) {
  CUdevice device = 0;
  if (context == nullptr || flags != 0) return CUDA_ERROR_INVALID_VALUE;
  if (const CUresult found = context_device(nullptr, &device); found != CUDA_SUCCESS) return found;
  return driver_api().cuDevicePrimaryCtxRetain(context, device);
}

/// Stays current while others use it.
CUresult detach(CUcontext context) {
  const DriverApi& api = driver_api();
  CUdevice device = 0;
  if (context == nullptr) return CUDA_ERROR_INVALID_VALUE;
  CUresult result = context_device(context, &device);
  if (result == CUDA_SUCCESS) result = api.cuDevicePrimaryCtxRelease(device);
  if (result != CUDA_SUCCESS) return result;
  unsigned int flags = 0;
  int active = 0;
  CUcontext current = nullptr;
  api.cuDevicePrimaryCtxGetState(device, &flags, &active);
  api.cuCtxGetCurrent(&current);
  if (active == 0 && current == context) api.cuCtxPopCurrent(nullptr);
  return CUDA_SUCCESS;
}

CUresult get_device_2(CUdevice* device, CUcontext context) {
  return device == nullptr ? CUDA_ERROR_INVALID_VALUE : context_device(context, device);
}

CUresult synchronize_2(CUcontext context) {
  const DriverApi& api = driver_api();
  if (context == nullptr) return api.cuCtxSynchronize();
  if (const CUresult result = api.cuCtxPushCurrent(context); result != CUDA_SUCCESS) return result;
  const CUresult waited = api.cuCtxSynchronize();
  api.cuCtxPopCurrent(nullptr);
  return waited;
}

/// The interface of all contexts since CUDA 3.2.
CUresult get_api_version(CUcontext context, unsigned int* version) {
  CUdevice device = 0;
  if (version == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (const CUresult found = context_device(context, &device); found != CUDA_SUCCESS) return found;
  *version = 3020;
  return CUDA_SUCCESS;
}

/// Flags say how a GPU is waited for; work is done when a wait begins here.
CUresult get_flags(unsigned int* flags) {
  CUdevice device = 0;
  if (flags == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (const CUresult found = context_device(nullptr, &device); found != CUDA_SUCCESS) return found;
  *flags = CU_CTX_SCHED_AUTO;
  return CUDA_SUCCESS;
}
CUresult set_flags(unsigned int flags) {
  unsigned int now = 0;
  return (flags & ~unsigned{CU_CTX_FLAGS_MASK}) != 0 ? CUDA_ERROR_INVALID_VALUE : get_flags(&now);
}
CUresult set_primary_flags(CUdevice device, unsigned int flags) {
  unsigned int now = 0;
  int active = 0;
  if ((flags & ~unsigned{CU_CTX_FLAGS_MASK}) != 0) return CUDA_ERROR_INVALID_VALUE;
  return driver_api().cuDevicePrimaryCtxGetState(device, &now, &active);
}

/// A driver's undocumented tables: each begins with its size in bytes. NVRTC asks for two, looks at
/// the size, and goes without when it is small, but takes no error for an answer. Callers that do
/// not look find functions that refuse.
CUresult get_export_table(const void** table, const CUuuid*) {
  struct Table {
    std::size_t size = sizeof(std::size_t);
    std::array<CUresult (*)(), 127> functions;
    Table() {
      functions.fill([] { return CUDA_ERROR_NOT_SUPPORTED; });
    }
  };
  static const Table instance;
  if (table == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *table = &instance;
  return CUDA_SUCCESS;
}

}  // namespace

std::span<const Function> context_functions() {
  static const Function rows[] = {
      provide<create_2>("cuCtxCreate", "cuCtxCreate_v2", 3020),
      provide<create_3>("cuCtxCreate", "cuCtxCreate_v3", 11040),
      provide<create_4>("cuCtxCreate", "cuCtxCreate_v4", 12050),
      provide<destroy>("cuCtxDestroy", "cuCtxDestroy_v2", 4000),
      provide<attach>("cuCtxAttach", "cuCtxAttach", 2000),
      provide<detach>("cuCtxDetach", "cuCtxDetach", 2000),
      provide<get_device_2>("cuCtxGetDevice", "cuCtxGetDevice_v2", 13000),
      provide<synchronize_2>("cuCtxSynchronize", "cuCtxSynchronize_v2", 13000),
      provide<get_api_version>("cuCtxGetApiVersion", "cuCtxGetApiVersion", 3020),
      provide<get_flags>("cuCtxGetFlags", "cuCtxGetFlags", 7000),
      provide<set_flags>("cuCtxSetFlags", "cuCtxSetFlags", 12010),
      provide<set_primary_flags>("cuDevicePrimaryCtxSetFlags", "cuDevicePrimaryCtxSetFlags_v2",
                                 11000),
      provide<get_export_table>("cuGetExportTable", "cuGetExportTable", 3000),
  };
  return rows;
}

}  // namespace kernwright::libcuda
