// Contexts that a program makes for itself, and functions by name and version.
#include "libcuda/contexts.h"

#include "libcuda/composed.h"
#include "sim/device.h"

#include <array>
#include <cstddef>
#include <cstring>

using namespace kernwright;
using sim::driver_api;

namespace {

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

}  // namespace

#pragma GCC visibility push(default)
extern "C" {

CUresult cuCtxCreate_v2(CUcontext* context, unsigned int, CUdevice device) {
  return create(context, device);
}

/// With execution affinity, which simulated devices do not have.
CUresult cuCtxCreate_v3(CUcontext* context, void* affinity, int count, unsigned int,
                        CUdevice device) {
  if (affinity != nullptr || count != 0) return CUDA_ERROR_UNSUPPORTED_EXEC_AFFINITY;
  return create(context, device);
}

/// With parameters, which may all be left out: affinity, or a graphics context's; neither is there.
CUresult cuCtxCreate_v4(CUcontext* context, const CreateParameters* parameters, unsigned int,
                        CUdevice device) {
  if (parameters == nullptr) return create(context, device);
  if (parameters->graphics != nullptr) return CUDA_ERROR_NOT_SUPPORTED;
  return cuCtxCreate_v3(context, parameters->affinity, parameters->affinity_count, 0, device);
}

CUresult cuCtxDestroy_v2(CUcontext context) {
  const DriverApi& api = driver_api();
  CUcontext current = nullptr;
  CUdevice device = 0;
  if (const CUresult result = api.cuCtxGetCurrent(&current); result != CUDA_SUCCESS) return result;
  // Only the current context tells its device: the one to destroy becomes current for a moment.
  if (const CUresult result = api.cuCtxPushCurrent(context); result != CUDA_SUCCESS) return result;
  const CUresult found = api.cuCtxGetDevice(&device);
  api.cuCtxPopCurrent(nullptr);
  if (found != CUDA_SUCCESS) return found;
  if (current == context) api.cuCtxPopCurrent(nullptr);
  return api.cuDevicePrimaryCtxRelease(device);
}

/// A driver's undocumented tables: each begins with its size in bytes. NVRTC asks for two, looks at
/// the size, and goes without when it is small, but takes no error for an answer. Who does not look
/// finds functions that refuse.
CUresult cuGetExportTable(const void** table, const CUuuid*) {
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

}  // extern "C"
#pragma GCC visibility pop

namespace kernwright::libcuda {
namespace {

const Versioned kVersions[] = {
    {"cuCtxCreate", 3020, address(cuCtxCreate_v2)},
    {"cuCtxCreate", 11040, address(cuCtxCreate_v3)},
    {"cuCtxCreate", 12050, address(cuCtxCreate_v4)},
    {"cuCtxDestroy", 4000, address(cuCtxDestroy_v2)},
    {"cuGetProcAddress", 12000, address(get_proc_address)},
    // Signatures newer than those of driver_api.def.
    {"cuStreamGetCaptureInfo", 12030, nullptr},
    {"cuGraphNodeGetDependencies", 12030, nullptr},
    {"cuMemAdvise", 12020, nullptr},
    {"cuMemPrefetchAsync", 12020, nullptr},
};

}  // namespace

CUresult get_proc_address(const char* symbol, void** function, int cuda_version, cuuint64_t flags,
                          CUdriverProcAddressQueryResult* status) {
  if (symbol == nullptr || function == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const Versioned* newest = nullptr;
  const auto consider = [&](const Versioned& version) {
    const bool fits = std::strcmp(version.name, symbol) == 0 && version.since <= cuda_version;
    if (fits && (newest == nullptr || newest->since < version.since)) newest = &version;
  };
  for (const Versioned& version : kVersions) consider(version);
  for (const Versioned& version : composed_functions()) consider(version);
  if (newest == nullptr) {
    return sim::driver_api().cuGetProcAddress(symbol, function, cuda_version, flags, status);
  }
  *function = newest->function;
  const bool found = *function != nullptr;
  if (status != nullptr) {
    *status = found ? CU_GET_PROC_ADDRESS_SUCCESS : CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND;
  }
  return found || status != nullptr ? CUDA_SUCCESS : CUDA_ERROR_NOT_FOUND;
}

}  // namespace kernwright::libcuda
