// Driver functions that need no device: initialisation, version, error texts, look-up by name.
#include "base/errors.h"
#include "base/log.h"
#include "sim/device.h"
#include "sim/device/error_text.h"
#include "sim/device/sim_driver.h"

#include <cstring>
#include <type_traits>

namespace kernwright::sim {
namespace {

void init(unsigned int flags) {
  require(flags == 0);
  // For programs that ask for no report there is the log.
  const auto refuse = [](CUresult code, const Error& error) {
    log(LogLevel::error, "simulated device: {}", error.what());
    fail_with(code, FaultKind::none, error.what());
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

void driver_get_version(int* version) {
  require(version != nullptr);
  *version = device_profile().driver_version;
}

void get_error_name(CUresult error, const char** text) {
  require(text != nullptr);
  *text = result_name(error);
  require(*text != nullptr);
}

void get_error_string(CUresult error, const char** text) {
  require(text != nullptr);
  *text = error_text(error);
  require(*text != nullptr);
}

/// Finds a slot of this table by the function's name, without any version suffix.
void get_proc_address(const char* symbol, void** function, int cuda_version, cuuint64_t,
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

/// `context` may be null. The finding belongs to the thread that got the error code.
CUresult take_last_report(CUcontext, FaultReport* report) {
  if (report == nullptr) return CUDA_ERROR_INVALID_VALUE;
  return take_report(*report) ? CUDA_SUCCESS : CUDA_ERROR_NOT_FOUND;
}

}  // namespace

void install_init(DriverApi& api) {
  api.cuInit = guarded<init>;
  api.cuDriverGetVersion = guarded<driver_get_version>;
  api.cuGetErrorName = guarded<get_error_name>;
  api.cuGetErrorString = guarded<get_error_string>;
  api.cuGetProcAddress = guarded<get_proc_address>;
  api.kwTakeReport = take_last_report;
}

}  // namespace kernwright::sim
