// A driver table over host memory: handles, counts and planned failures.
#pragma once

#include "base/fault.h"
#include "core/device_registry.h"
#include "driver/driver_api.h"

#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

namespace kernwright::testing {

/// A kernel of every module of the fake driver.
struct FakeKernel {
  std::string name;
  std::vector<std::size_t> parameter_sizes;
  int registers = 32;
  int shared_bytes = 0;
  int max_threads = 1024;
  std::array<int, 3> required_cluster{0, 0, 0};
};

/// The arguments of a launch.
struct FakeLaunch {
  std::string kernel;
  std::array<unsigned, 3> grid{}, block{};
  unsigned shared_bytes = 0;
  CUstream stream = nullptr;
  std::vector<CUlaunchAttribute> attributes;
  std::vector<std::string> arguments;  ///< bytes of each parameter
};

/// The state behind the table. One per process, because the table's functions have no place for an
/// instance; reset() makes it as new. Work is done when it is issued.
class FakeDriver {
 public:
  static FakeDriver& get();

  const DriverApi& api() const { return api_; }
  void reset();

  /// The calls number `skip` + 1 up to `skip` + `times` of the function return `result`, undone.
  void fail(const std::string& function, CUresult result, int times = 1, int skip = 0);
  int calls(const std::string& function);
  /// Objects made and not destroyed: "stream", "event", "module", "memory", "host".
  int live(const std::string& kind);

  // The machine; set before the devices are listed.
  int device_count = 2;
  bool peers = true;                     ///< the devices reach each other's memory
  std::map<int, int> attributes;         ///< CUdevice_attribute to value, over the defaults
  std::uint64_t total_memory = 1 << 30;  ///< bytes of each device
  unsigned partition_groups = 0;         ///< of 8 multiprocessors each; 0: no green contexts
  unsigned partition_remainder = 0;      ///< multiprocessors left by a split
  std::vector<FakeKernel> kernels;
  std::map<std::string, std::size_t> globals;  ///< name to bytes
  bool tells_parameters = true;                ///< cuFuncGetParamInfo exists
  std::string load_log;                        ///< put into the error log of a failing module load

  // The calls so far.
  std::vector<FakeLaunch> launches;
  std::optional<Fault> report;  ///< the next one for kwTakeReport
  std::string image;            ///< the last one loaded
  std::string resource_image;   ///< of the last kwSetModuleResources
  std::vector<std::pair<int, CUresult>> notes;

  /// Internal to the table: counts the call and says whether it is to fail.
  std::optional<CUresult> enter(const char* function);
  void made(const char* kind, const void* handle);
  bool gone(const char* kind, const void* handle);

  std::recursive_mutex mutex;
  std::map<std::uint64_t, std::vector<unsigned char>*> memory;  ///< by address
  std::uint64_t used_memory = 0;
  std::map<const void*, std::string> handles;  ///< to kind

 private:
  FakeDriver();
  struct Failure {
    CUresult result;
    int skip, times;
  };
  DriverApi api_;
  std::map<std::string, Failure> failures_;
  std::map<std::string, int> calls_;
};

// Every function counts itself and fails when the test planned so; then the body runs.
#define KW_FAKE(name, parameters, ...)                             \
  api.name = [] parameters -> CUresult {                           \
    const std::lock_guard lock(fake().mutex);                      \
    if (const auto planned = fake().enter(#name)) return *planned; \
    __VA_ARGS__                                                    \
  }

/// A registry over a reset fake driver, with its two GPUs, kept for the life of the process because
/// devices are.
DeviceRegistry& fake_registry();
/// Resets the fake driver and makes new devices: no error is latched, no value cached.
Device& fresh_device(int index = 0);

/// The current context of this thread.
CUcontext fake_current_context();
void set_fake_current_context(CUcontext context);

}  // namespace kernwright::testing
