// Initialisation, devices and contexts of the simulated driver.
#include "sim/device/profile.h"
#include "unit/sim/device/device_fixture.h"

#include <sys/wait.h>
#include <unistd.h>

#include <cstring>
#include <thread>

using namespace kernwright;
using namespace kernwright::sim;

namespace {

/// All slots of a table, in the order of driver_api.def.
std::vector<void*> slots_of(const DriverApi& api) {
  std::vector<void*> slots;
  for_each_slot(
      api, [&](const DriverRow&, auto slot) { slots.push_back(reinterpret_cast<void*>(slot)); });
  return slots;
}

}  // namespace

TEST_CASE("sim device: every slot that the driver table requires is filled or says so") {
  const std::vector<void*> unsupported = slots_of(DriverApi{});
  const std::vector<void*> own = slots_of(driver_api());
  std::vector<std::string> missing;
  std::size_t index = 0;
  for_each_slot(driver_api(), [&](const DriverRow& row, auto) {
    if (own[index] == unsupported[index]) missing.emplace_back(row.name);
    ++index;
  });
  CHECK(missing == std::vector<std::string>{});
  int clusters = 0;  // only a device of 9.0 has them
  CHECK(driver_api().cuOccupancyMaxActiveClusters(&clusters, nullptr, nullptr) ==
        (device_profile().is_90 ? CUDA_ERROR_INVALID_VALUE : CUDA_ERROR_NOT_SUPPORTED));
}

TEST_CASE("sim device: version, error names and functions by name") {
  const DriverApi& api = driver_api();
  CHECK(api.cuInit(1) == CUDA_ERROR_INVALID_VALUE);
  REQUIRE(api.cuInit(0) == CUDA_SUCCESS);
  CHECK(api.cuInit(0) == CUDA_SUCCESS);
  int version = 0;
  CHECK(api.cuDriverGetVersion(&version) == CUDA_SUCCESS);
  CHECK(version == 13000);
  CHECK(api.cuDriverGetVersion(nullptr) == CUDA_ERROR_INVALID_VALUE);
  const char* text = nullptr;
  CHECK(api.cuGetErrorName(CUDA_ERROR_ILLEGAL_ADDRESS, &text) == CUDA_SUCCESS);
  CHECK(std::string(text) == "CUDA_ERROR_ILLEGAL_ADDRESS");
  CHECK(api.cuGetErrorString(CUDA_ERROR_OUT_OF_MEMORY, &text) == CUDA_SUCCESS);
  CHECK(std::string(text) == "out of memory");
  CHECK(api.cuGetErrorName(static_cast<CUresult>(12345), &text) == CUDA_ERROR_INVALID_VALUE);
  void* function = nullptr;
  CUdriverProcAddressQueryResult status{};
  CHECK(api.cuGetProcAddress("cuMemAlloc", &function, 13000, 0, &status) == CUDA_SUCCESS);
  CHECK(function == reinterpret_cast<void*>(api.cuMemAlloc));
  CHECK(api.cuGetProcAddress("cuCtxGetId", &function, 11000, 0, &status) == CUDA_SUCCESS);
  CHECK(status == CU_GET_PROC_ADDRESS_VERSION_NOT_SUFFICIENT);
  CHECK(api.cuGetProcAddress("cuNoSuch", &function, 13000, 0, nullptr) == CUDA_ERROR_NOT_FOUND);
  CHECK(function == nullptr);
}

TEST_CASE("sim device: it describes itself") {
  const DriverApi& api = driver_api();
  REQUIRE(api.cuInit(0) == CUDA_SUCCESS);
  int count = 0;
  CHECK(api.cuDeviceGetCount(&count) == CUDA_SUCCESS);
  CHECK(count >= 1);
  CUdevice device = -1;
  CHECK(api.cuDeviceGet(&device, count) == CUDA_ERROR_INVALID_DEVICE);
  CHECK(api.cuDeviceGet(&device, -1) == CUDA_ERROR_INVALID_DEVICE);
  REQUIRE(api.cuDeviceGet(&device, 0) == CUDA_SUCCESS);
  char name[64];
  CHECK(api.cuDeviceGetName(name, sizeof name, device) == CUDA_SUCCESS);
  CHECK(std::string(name) == "Kernwright simulated device");
  CHECK(api.cuDeviceGetName(name, 5, device) == CUDA_SUCCESS);
  CHECK(std::string(name) == "Kern");
  std::size_t bytes = 0;
  CHECK(api.cuDeviceTotalMem(&bytes, device) == CUDA_SUCCESS);
  CHECK(bytes >= std::size_t{1} << 20);
  CUuuid uuid{};
  CHECK(api.cuDeviceGetUuid(&uuid, device) == CUDA_SUCCESS);
  CHECK(std::memcmp(uuid.bytes, "kernwright-sim", 14) == 0);
  char bus[16];
  CHECK(api.cuDeviceGetPCIBusId(bus, sizeof bus, device) == CUDA_SUCCESS);
  CHECK(std::string(bus) == "0000:00:00.0");
  CHECK(api.cuDeviceGetPCIBusId(bus, 8, device) == CUDA_ERROR_INVALID_VALUE);
  CHECK(api.cuDeviceGetByPCIBusId(&device, "00:00.0") == CUDA_SUCCESS);
  CHECK(device == 0);
  CHECK(api.cuDeviceGetByPCIBusId(&device, "0000:ff:00.0") == CUDA_ERROR_INVALID_VALUE);
}

TEST_CASE("sim device: attributes are those of its compute capability") {
  const DriverApi& api = driver_api();
  REQUIRE(api.cuInit(0) == CUDA_SUCCESS);
  const auto attribute = [&](CUdevice_attribute which) {
    int value = -1;
    REQUIRE(api.cuDeviceGetAttribute(&value, which, 0) == CUDA_SUCCESS);
    return value;
  };
  const bool is_90 = device_profile().is_90;
  CHECK(attribute(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR) == (is_90 ? 9 : 8));
  CHECK(attribute(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR) == 0);
  CHECK(attribute(CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK) == 1024);
  CHECK(attribute(CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Z) == 64);
  CHECK(attribute(CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Y) == 65535);
  CHECK(attribute(CU_DEVICE_ATTRIBUTE_WARP_SIZE) == 32);
  CHECK(attribute(CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK) == 49152);
  CHECK(attribute(CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN) ==
        (is_90 ? 232448 : 166912));
  CHECK(attribute(CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR) ==
        (is_90 ? 233472 : 167936));
  CHECK(attribute(CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR) == 2048);
  CHECK(attribute(CU_DEVICE_ATTRIBUTE_MAX_BLOCKS_PER_MULTIPROCESSOR) == 32);
  CHECK(attribute(CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_MULTIPROCESSOR) == 65536);
  CHECK(attribute(CU_DEVICE_ATTRIBUTE_CLUSTER_LAUNCH) == (is_90 ? 1 : 0));
  CHECK(attribute(CU_DEVICE_ATTRIBUTE_TENSOR_MAP_ACCESS_SUPPORTED) == (is_90 ? 1 : 0));
  CHECK(attribute(CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED) == 1);
  CHECK(attribute(CU_DEVICE_ATTRIBUTE_UNIFIED_ADDRESSING) == 1);
  int value = 0;
  CHECK(api.cuDeviceGetAttribute(&value, static_cast<CUdevice_attribute>(0), 0) ==
        CUDA_ERROR_INVALID_VALUE);
  CHECK(api.cuDeviceGetAttribute(&value, static_cast<CUdevice_attribute>(100000), 0) ==
        CUDA_ERROR_INVALID_VALUE);
  CHECK(api.cuDeviceGetAttribute(&value, CU_DEVICE_ATTRIBUTE_WARP_SIZE, 1000) ==
        CUDA_ERROR_INVALID_DEVICE);
}

TEST_CASE("sim context: retained, counted, released, and reborn with a new id") {
  const DriverApi& api = driver_api();
  REQUIRE(api.cuInit(0) == CUDA_SUCCESS);
  unsigned flags = 99;
  int active = 99;
  CUcontext first = nullptr, second = nullptr;
  REQUIRE(api.cuDevicePrimaryCtxGetState(0, &flags, &active) == CUDA_SUCCESS);
  CHECK(active == 0);
  CHECK(api.cuDevicePrimaryCtxRelease(0) == CUDA_ERROR_INVALID_CONTEXT);
  REQUIRE(api.cuDevicePrimaryCtxRetain(&first, 0) == CUDA_SUCCESS);
  REQUIRE(api.cuDevicePrimaryCtxRetain(&second, 0) == CUDA_SUCCESS);
  CHECK(first == second);
  unsigned long long id = 0, later = 0;
  CHECK(api.cuCtxGetId(first, &id) == CUDA_SUCCESS);
  CHECK(api.cuDevicePrimaryCtxRelease(0) == CUDA_SUCCESS);
  CHECK(api.cuDevicePrimaryCtxGetState(0, &flags, &active) == CUDA_SUCCESS);
  CHECK(active == 1);
  REQUIRE(api.cuCtxPushCurrent(first) == CUDA_SUCCESS);
  CHECK(api.cuDevicePrimaryCtxRelease(0) == CUDA_SUCCESS);
  CHECK(api.cuCtxSynchronize() == CUDA_ERROR_CONTEXT_IS_DESTROYED);
  CHECK(api.cuCtxGetId(first, &later) == CUDA_ERROR_CONTEXT_IS_DESTROYED);
  REQUIRE(api.cuDevicePrimaryCtxRetain(&second, 0) == CUDA_SUCCESS);
  CHECK(api.cuCtxSynchronize() == CUDA_SUCCESS);
  CHECK(api.cuCtxGetId(second, &later) == CUDA_SUCCESS);
  CHECK(later != id);
  CHECK(api.cuCtxPopCurrent(nullptr) == CUDA_SUCCESS);
  CHECK(api.cuDevicePrimaryCtxRelease(0) == CUDA_SUCCESS);
}

TEST_CASE("sim context: each thread has its own stack, and nothing works without a current one") {
  CurrentDevice device;
  const DriverApi& api = device.api;
  CUcontext current = nullptr;
  CHECK(api.cuCtxGetCurrent(&current) == CUDA_SUCCESS);
  CHECK(current == device.context);
  std::thread([&] {
    CUcontext other = device.context;
    CHECK(api.cuCtxGetCurrent(&other) == CUDA_SUCCESS);
    CHECK(other == nullptr);
    CUdeviceptr address = 0;
    CHECK(api.cuMemAlloc(&address, 16) == CUDA_ERROR_INVALID_CONTEXT);
    CHECK(api.cuStreamSynchronize(nullptr) == CUDA_ERROR_INVALID_CONTEXT);
    CHECK(api.cuCtxPopCurrent(nullptr) == CUDA_ERROR_INVALID_CONTEXT);
    CHECK(api.cuCtxSetCurrent(device.context) == CUDA_SUCCESS);
    CHECK(api.cuMemAlloc(&address, 16) == CUDA_SUCCESS);
    CHECK(api.cuMemFree(address) == CUDA_SUCCESS);
    CHECK(api.cuCtxSetCurrent(nullptr) == CUDA_SUCCESS);
    CHECK(api.cuCtxSynchronize() == CUDA_ERROR_INVALID_CONTEXT);
  }).join();
  CHECK(api.cuCtxSetCurrent(reinterpret_cast<CUcontext>(&device)) == CUDA_ERROR_INVALID_CONTEXT);
  CHECK(api.cuCtxPushCurrent(reinterpret_cast<CUcontext>(std::uintptr_t{64})) ==
        CUDA_ERROR_INVALID_CONTEXT);
  CHECK(api.cuCtxGetCurrent(&current) == CUDA_SUCCESS);
  CHECK(current == device.context);
  CUdevice ordinal = -1;
  CHECK(api.cuCtxGetDevice(&ordinal) == CUDA_SUCCESS);
  CHECK(ordinal == 0);
}

TEST_CASE("sim context: limits and priorities") {
  CurrentDevice device;
  std::size_t value = 0;
  CHECK(device.api.cuCtxGetLimit(&value, CU_LIMIT_MALLOC_HEAP_SIZE) == CUDA_SUCCESS);
  CHECK(value == std::size_t{8} << 20);
  CHECK(device.api.cuCtxSetLimit(CU_LIMIT_MALLOC_HEAP_SIZE, 1 << 20) == CUDA_SUCCESS);
  CHECK(device.api.cuCtxGetLimit(&value, CU_LIMIT_MALLOC_HEAP_SIZE) == CUDA_SUCCESS);
  CHECK(value == 1 << 20);
  CHECK(device.api.cuCtxGetLimit(&value, CU_LIMIT_STACK_SIZE) == CUDA_SUCCESS);
  CHECK(value == 1024);
  CHECK(device.api.cuCtxGetLimit(&value, CU_LIMIT_DEV_RUNTIME_SYNC_DEPTH) ==
        CUDA_ERROR_UNSUPPORTED_LIMIT);
  CHECK(device.api.cuCtxGetLimit(&value, static_cast<CUlimit>(77)) == CUDA_ERROR_INVALID_VALUE);
  int least = 9, greatest = 9;
  CHECK(device.api.cuCtxGetStreamPriorityRange(&least, &greatest) == CUDA_SUCCESS);
  CHECK(least == 0);
  CHECK(greatest == -5);
}

TEST_CASE("sim context: what it owned ends with it") {
  const DriverApi& api = driver_api();
  CUdeviceptr memory = 0;
  CUstream stream = nullptr;
  CUevent event = nullptr;
  {
    CurrentDevice device;
    memory = device.allocate(100);
    REQUIRE(api.cuStreamCreate(&stream, 0) == CUDA_SUCCESS);
    REQUIRE(api.cuEventCreate(&event, 0) == CUDA_SUCCESS);
  }
  CurrentDevice device;
  CHECK(api.cuMemFree(memory) == CUDA_ERROR_INVALID_VALUE);
  CHECK(api.cuStreamDestroy(stream) == CUDA_ERROR_INVALID_HANDLE);
  CHECK(api.cuEventDestroy(event) == CUDA_ERROR_INVALID_HANDLE);
  memory = device.allocate(100);
  CHECK(api.cuDevicePrimaryCtxReset(0) == CUDA_SUCCESS);
  CHECK(api.cuMemFree(memory) == CUDA_ERROR_INVALID_VALUE);
  CHECK(api.cuCtxSynchronize() == CUDA_SUCCESS);
}

#if !defined(__SANITIZE_THREAD__)
TEST_CASE("sim device: a forked child is told, not harmed") {
  CurrentDevice device;
  const pid_t child = fork();
  if (child == 0) {
    CUdeviceptr address = 0;
    const bool refused = device.api.cuMemAlloc(&address, 16) == CUDA_ERROR_NOT_INITIALIZED &&
                         device.api.cuInit(0) == CUDA_ERROR_NOT_INITIALIZED;
    _exit(refused ? 0 : 1);
  }
  int status = -1;
  waitpid(child, &status, 0);
  CHECK(WIFEXITED(status));
  CHECK(WEXITSTATUS(status) == 0);
  CHECK(device.api.cuCtxSynchronize() == CUDA_SUCCESS);
}
#endif
