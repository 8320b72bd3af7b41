// From libcuda.so.1 to a DriverApi: cuInit, the version, then every row of driver_api.def.
#include "driver/driver_loader.h"

#include "base/errors.h"
#include "base/format.h"
#include "driver/shared_library.h"

#include <cstdlib>
#include <memory>

namespace kernwright {

namespace {

constexpr const char* kAdvice =
    "install the NVIDIA driver, or run on the simulated device with KERNWRIGHT_DEVICE=sim";

[[noreturn]] void not_found(const std::string& why, const std::string& advice) {
  throw DriverNotFound(format("CUDA driver not detected: {}; {}", why, advice));
}

std::string cuda_version(int version) {
  return format("{}.{}", version / 1000, version % 1000 / 10);
}

/// The slot's function, or a failure that names the library: these exist in every driver.
template <typename Slot>
void find_basic(const SharedLibrary& library, const std::string& path, const char* symbol,
                Slot& slot) {
  void* const address = library.symbol(symbol);
  if (address == nullptr) {
    not_found(format("{} has no function {}, so it is no CUDA driver", path, symbol), kAdvice);
  }
  set_function(slot, address);
}

[[noreturn]] void initialization_failed(const std::string& path, CUresult result) {
  switch (result) {
    case CUDA_ERROR_STUB_LIBRARY:
      not_found(format("{} is the CUDA toolkit's stub for linking, not a driver", path), kAdvice);
    case CUDA_ERROR_NO_DEVICE:
      throw DriverNotFound(
          format("no GPU devices found: the driver {} reports none; check nvidia-smi and "
                 "CUDA_VISIBLE_DEVICES, or use KERNWRIGHT_DEVICE=sim",
                 path));
    case CUDA_ERROR_SYSTEM_DRIVER_MISMATCH:
      not_found(format("the driver library {} does not match the loaded kernel module", path),
                "reboot after updating the driver, or use KERNWRIGHT_DEVICE=sim");
    default: {
      const char* const name = result_name(result);
      not_found(
          format("cuInit of {} failed with {} ({})", path,
                 name != nullptr ? name : "an unknown error", static_cast<int>(result)),
          "check nvidia-smi and the permissions of /dev/nvidia*, or use KERNWRIGHT_DEVICE=sim");
    }
  }
}

int checked_version(const DriverApi& api, const std::string& path) {
  int version = 0;
  const CUresult result = api.cuDriverGetVersion(&version);
  if (result != CUDA_SUCCESS) initialization_failed(path, result);
  if (version < kOldestDriverVersion) {
    not_found(format("the driver {} supports CUDA {}, but {} or newer is needed", path,
                     cuda_version(version), cuda_version(kOldestDriverVersion)),
              "update the NVIDIA driver, or use KERNWRIGHT_DEVICE=sim");
  }
  return version;
}

/// Looks up one row: first with the exact version, so that a newer signature is never taken; then
/// by the versioned symbol.
void* find_row(const DriverApi& api, const SharedLibrary& library, const DriverRow& row) {
  void* address = nullptr;
  CUdriverProcAddressQueryResult status = CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND;
  const CUresult result = api.cuGetProcAddress(row.name, &address, row.since,
                                               CU_GET_PROC_ADDRESS_LEGACY_STREAM, &status);
  if (result == CUDA_SUCCESS && status == CU_GET_PROC_ADDRESS_SUCCESS && address != nullptr) {
    return address;
  }
  return library.symbol(row.symbol);
}

/// The look-up of fill_table(), in one copy for all types of slots.
class RowFinder {
 public:
  RowFinder(const DriverApi& api, const SharedLibrary& library, const std::string& path,
            int version)
      : api_(api), library_(library), path_(path), version_(version) {}

  /// Null for rows without a driver function, and for missing optional ones.
  [[gnu::noinline]] void* find(const DriverRow& row) const {
    if (row.symbol[0] == '\0') return nullptr;
    void* const address = find_row(api_, library_, row);
    if (address == nullptr && row.need == DriverNeed::REQUIRED) {
      not_found(format("the driver {} (CUDA {}) has no function {}, which CUDA {} introduced",
                       path_, cuda_version(version_), row.symbol, cuda_version(row.since)),
                "update the NVIDIA driver, or use KERNWRIGHT_DEVICE=sim");
    }
    return address;
  }

 private:
  DriverApi api_;  ///< with the functions that find others
  const SharedLibrary& library_;
  const std::string& path_;
  int version_;
};

/// Streams beyond the connections to the hardware share some, and wait for each other where nobody
/// asked for it. The driver reads the variable as it starts; without it there are 8. More cost
/// every process: on an H200 a context of 8 opens in 0.13 s, of 16 in 0.26 s, of 32 in 0.54 s, and
/// the GPU has room for 27 contexts of 16, and for 14 of 32. A value of the user stays.
void ask_for_connections() noexcept { ::setenv("CUDA_DEVICE_MAX_CONNECTIONS", "16", 0); }

void fill_table(DriverApi& api, const SharedLibrary& library, const std::string& path,
                int version) {
  const RowFinder finder(api, library, path, version);
  for_each_slot(api, [&](const DriverRow& row, auto& slot) {
    if (void* const address = finder.find(row); address != nullptr) set_function(slot, address);
  });
}

}  // namespace

LoadedDriver open_cuda_driver(const std::string& library_name) {
  std::string error;
  SharedLibrary library = SharedLibrary::open(library_name, error);
  if (!library) not_found(format("{} could not be opened ({})", library_name, error), kAdvice);

  LoadedDriver driver;
  driver.path = library.path();
  if (driver.path.empty()) driver.path = library_name;
  if (library.symbol("kw_is_simulated") != nullptr) {
    not_found(format("{} is the simulated device for other programs", driver.path),
              "take its folder out of LD_LIBRARY_PATH for a GPU, or set KERNWRIGHT_DEVICE=sim");
  }
  find_basic(library, driver.path, "cuInit", driver.api.cuInit);
  find_basic(library, driver.path, "cuDriverGetVersion", driver.api.cuDriverGetVersion);
  ask_for_connections();
  if (const CUresult result = driver.api.cuInit(0); result != CUDA_SUCCESS) {
    initialization_failed(driver.path, result);
  }
  // NOTE: from here on the library stays loaded: a driver that was initialized runs threads of its
  // own and must not be unmapped.
  library.keep_open();
  driver.version = checked_version(driver.api, driver.path);
  if (void* const address = library.symbol("cuGetProcAddress_v2"); address != nullptr) {
    set_function(driver.api.cuGetProcAddress, address);
  }
  fill_table(driver.api, library, driver.path, driver.version);
  return driver;
}

namespace {

struct Outcome {
  std::unique_ptr<LoadedDriver> driver;
  std::string reason;
};

/// Opened once; leaked on purpose, as the driver outlives every static object.
const Outcome& process_driver() {
  static const Outcome* const outcome = [] {
    auto found = std::make_unique<Outcome>();
    try {
      found->driver = std::make_unique<LoadedDriver>(open_cuda_driver("libcuda.so.1"));
    } catch (const DriverNotFound& error) {
      found->reason = error.what();
    }
    return found.release();
  }();
  return *outcome;
}

}  // namespace

const DriverApi* load_cuda_driver(std::string* reason) {
  const Outcome& outcome = process_driver();
  if (reason != nullptr) *reason = outcome.reason;
  return outcome.driver ? &outcome.driver->api : nullptr;
}

const LoadedDriver* cuda_driver() { return process_driver().driver.get(); }

}  // namespace kernwright
