// Driver functions without a device: initialisation, version, error texts, look-up by name.
#include "base/errors.h"
#include "base/log.h"
#include "sim/device.h"
#include "sim/device/sim_driver.h"

#include <algorithm>
#include <cstring>
#include <iterator>

namespace kernwright::sim {
namespace {

/// A sentence for each result code of the simulated device.
struct Row {
  CUresult code;
  const char* text;
};

constexpr Row kRows[] = {
    {CUDA_SUCCESS, "no error"},
    {CUDA_ERROR_INVALID_VALUE, "an argument has a value that is not allowed"},
    {CUDA_ERROR_OUT_OF_MEMORY, "out of memory"},
    {CUDA_ERROR_NOT_INITIALIZED, "cuInit was not called, or the process was forked afterwards"},
    {CUDA_ERROR_DEINITIALIZED, "the driver is shutting down"},
    {CUDA_ERROR_NO_DEVICE, "there is no device"},
    {CUDA_ERROR_INVALID_DEVICE, "there is no device with this ordinal"},
    {CUDA_ERROR_INVALID_IMAGE, "the image is not device code"},
    {CUDA_ERROR_INVALID_CONTEXT, "no context is current, or it is not a context"},
    {CUDA_ERROR_NO_BINARY_FOR_GPU, "the image holds no code for this device"},
    {CUDA_ERROR_UNSUPPORTED_LIMIT, "the device has no such limit"},
    {CUDA_ERROR_INVALID_PTX, "the PTX text is malformed or not supported"},
    {CUDA_ERROR_INVALID_HANDLE, "the handle is not valid (any more) or belongs elsewhere"},
    {CUDA_ERROR_NOT_FOUND, "nothing of this name was found"},
    {CUDA_ERROR_NOT_READY, "work is still running"},
    {CUDA_ERROR_ILLEGAL_ADDRESS, "the kernel accessed memory that it may not access"},
    {CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES, "the launch needs more resources than there are"},
    {CUDA_ERROR_LAUNCH_TIMEOUT, "the kernel ran for too long and was stopped"},
    {CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED, "peer access is enabled already"},
    {CUDA_ERROR_PEER_ACCESS_NOT_ENABLED, "peer access is not enabled"},
    {CUDA_ERROR_PRIMARY_CONTEXT_ACTIVE, "the primary context is active"},
    {CUDA_ERROR_CONTEXT_IS_DESTROYED, "the current context was destroyed"},
    {CUDA_ERROR_ASSERT, "an assertion failed in device code"},
    {CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED, "the host memory is registered already"},
    {CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED, "the host memory is not registered"},
    {CUDA_ERROR_MISALIGNED_ADDRESS, "the kernel used an address that is not aligned"},
    {CUDA_ERROR_LAUNCH_FAILED, "the kernel failed"},
    {CUDA_ERROR_NOT_PERMITTED, "the operation is not permitted"},
    {CUDA_ERROR_NOT_SUPPORTED, "the simulated device does not support the operation"},
    {CUDA_ERROR_INVALID_CLUSTER_SIZE, "the cluster size is not valid"},
    {CUDA_ERROR_UNKNOWN, "unknown error"},
};

}  // namespace

void calls::cuInit(unsigned int flags) {
  require(flags == 0);
  // Programs that ask for no report can read the log.
  const auto refuse = [](CUresult code, const Error& error) {
    log(LogLevel::error, "simulated device: {}", error.what());
    fail_call(code, FaultKind::none, error.what());
  };
  try {
    initialise_sim_driver();
  } catch (const InvalidArgument& error) {
    refuse(CUDA_ERROR_INVALID_VALUE, error);
  } catch (const OutOfMemory& error) {
    refuse(CUDA_ERROR_OUT_OF_MEMORY, error);
  }
  sim_driver();  // not in a forked child
}

void calls::cuDriverGetVersion(int* version) {
  require(version != nullptr);
  *version = device_profile().driver_version;
}

void calls::cuGetErrorName(CUresult error, const char** text) {
  require(text != nullptr);
  *text = result_name(error);
  require(*text != nullptr);
}

void calls::cuGetErrorString(CUresult error, const char** text) {
  require(text != nullptr);
  const Row* const row = std::ranges::find(kRows, error, &Row::code);
  *text = row != std::end(kRows) ? row->text : result_name(error);
  require(*text != nullptr);
}

/// Finds a slot of this table by the function's name, without any version suffix.
void calls::cuGetProcAddress(const char* symbol, void** function, int cuda_version, cuuint64_t,
                             CUdriverProcAddressQueryResult* status) {
  require(symbol != nullptr && function != nullptr);
  *function = nullptr;
  auto result = CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND;
  for_each_slot(driver_api(), [&](const DriverRow& row, auto slot) {
    if (row.since == 0 || std::strcmp(row.name, symbol) != 0) return;
    result = row.since > cuda_version ? CU_GET_PROC_ADDRESS_VERSION_NOT_SUFFICIENT
                                      : CU_GET_PROC_ADDRESS_SUCCESS;
    if (result == CU_GET_PROC_ADDRESS_SUCCESS) *function = reinterpret_cast<void*>(slot);
  });
  if (status != nullptr) *status = result;
  require(*function != nullptr || status != nullptr, CUDA_ERROR_NOT_FOUND);
}

/// `context` may be null. The finding belongs to the thread with the error code.
void calls::kwTakeReport(CUcontext, Fault* report) {
  require(report != nullptr);
  require(take_report(*report), CUDA_ERROR_NOT_FOUND);
}

}  // namespace kernwright::sim
