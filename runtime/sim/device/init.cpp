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

CUresult init(unsigned int flags) {
  return guarded([&] {
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
  });
}

CUresult driver_get_version(int* version) {
  return guarded([&] {
    require(version != nullptr);
    *version = device_profile().driver_version;
  });
}

CUresult get_error_name(CUresult error, const char** text) {
  return guarded([&] {
    require(text != nullptr);
    *text = result_name(error);
    require(*text != nullptr);
  });
}

CUresult get_error_string(CUresult error, const char** text) {
  return guarded([&] {
    require(text != nullptr);
    *text = error_text(error);
    require(*text != nullptr);
  });
}

/// Finds a slot of this table by the function's name, without any version suffix.
CUresult get_proc_address(const char* symbol, void** function, int cuda_version, cuuint64_t,
                          CUdriverProcAddressQueryResult* status) {
  return guarded([&] {
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
  });
}

/// `context` may be null. The finding belongs to the thread that got the error code.
CUresult take_last_report(CUcontext, FaultReport* report) {
  if (report == nullptr) return CUDA_ERROR_INVALID_VALUE;
  return take_report(*report) ? CUDA_SUCCESS : CUDA_ERROR_NOT_FOUND;
}

}  // namespace

void install_init(DriverApi& api) {
  api.cuInit = init;
  api.cuDriverGetVersion = driver_get_version;
  api.cuGetErrorName = get_error_name;
  api.cuGetErrorString = get_error_string;
  api.cuGetProcAddress = get_proc_address;
  api.kwTakeReport = take_last_report;
}

}  // namespace kernwright::sim
