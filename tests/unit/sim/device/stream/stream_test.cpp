// Streams and events of the simulated driver.
#include "unit/sim/device/device_fixture.h"

#include <thread>

using namespace kernwright;
using namespace kernwright::sim;

TEST_CASE("sim stream: flags, priority, id, context") {
  CurrentDevice device;
  const DriverApi& api = device.api;
  CUstream stream = nullptr;
  CHECK(api.cuStreamCreate(&stream, 7) == CUDA_ERROR_INVALID_VALUE);
  CHECK(api.cuStreamCreate(nullptr, 0) == CUDA_ERROR_INVALID_VALUE);
  REQUIRE(api.cuStreamCreateWithPriority(&stream, CU_STREAM_NON_BLOCKING, -100) == CUDA_SUCCESS);
  int priority = 9;
  unsigned flags = 9;
  unsigned long long id = 0, legacy = 0;
  CUcontext context = nullptr;
  CHECK(api.cuStreamGetPriority(stream, &priority) == CUDA_SUCCESS);
  CHECK(priority == -5);
  CHECK(api.cuStreamGetFlags(stream, &flags) == CUDA_SUCCESS);
  CHECK(flags == CU_STREAM_NON_BLOCKING);
  CHECK(api.cuStreamGetCtx(stream, &context) == CUDA_SUCCESS);
  CHECK(context == device.context);
  CHECK(api.cuStreamGetId(stream, &id) == CUDA_SUCCESS);
  CHECK(api.cuStreamGetId(nullptr, &legacy) == CUDA_SUCCESS);
  CHECK(id != legacy);
  CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_ACTIVE;
  CHECK(api.cuStreamIsCapturing(stream, &status) == CUDA_SUCCESS);
  CHECK(status == CU_STREAM_CAPTURE_STATUS_NONE);
  for (const CUstream special : {CUstream{nullptr}, kStreamLegacy, kStreamPerThread, stream}) {
    CHECK(api.cuStreamSynchronize(special) == CUDA_SUCCESS);
    CHECK(api.cuStreamQuery(special) == CUDA_SUCCESS);
  }
  CHECK(api.cuStreamDestroy(stream) == CUDA_SUCCESS);
  CHECK(api.cuStreamDestroy(stream) == CUDA_ERROR_INVALID_HANDLE);
  CHECK(api.cuStreamDestroy(nullptr) == CUDA_ERROR_INVALID_HANDLE);
}

TEST_CASE("sim stream: handles come back, ids never do, foreign handles are refused") {
  CurrentDevice device;
  const DriverApi& api = device.api;
  CUstream first = nullptr, second = nullptr;
  unsigned long long first_id = 0, second_id = 0;
  REQUIRE(api.cuStreamCreate(&first, 0) == CUDA_SUCCESS);
  REQUIRE(api.cuStreamGetId(first, &first_id) == CUDA_SUCCESS);
  REQUIRE(api.cuStreamDestroy(first) == CUDA_SUCCESS);
  CHECK(api.cuStreamQuery(first) == CUDA_ERROR_INVALID_HANDLE);
  REQUIRE(api.cuStreamCreate(&second, 0) == CUDA_SUCCESS);
  REQUIRE(api.cuStreamGetId(second, &second_id) == CUDA_SUCCESS);
  CHECK(first == second);
  CHECK(first_id != second_id);
  CUevent event = nullptr;
  REQUIRE(api.cuEventCreate(&event, 0) == CUDA_SUCCESS);
  for (const std::uintptr_t bits :
       {std::uintptr_t{3}, std::uintptr_t{0x1000}, reinterpret_cast<std::uintptr_t>(&device),
        reinterpret_cast<std::uintptr_t>(event), reinterpret_cast<std::uintptr_t>(second) + 1,
        reinterpret_cast<std::uintptr_t>(second) + (64 << 20), ~std::uintptr_t{0}}) {
    CHECK(api.cuStreamQuery(reinterpret_cast<CUstream>(bits)) == CUDA_ERROR_INVALID_HANDLE);
  }
  CHECK(api.cuEventQuery(reinterpret_cast<CUevent>(second)) == CUDA_ERROR_INVALID_HANDLE);
  CHECK(api.cuEventDestroy(event) == CUDA_SUCCESS);
  for (int i = 0; i < 100000; ++i) {
    CUstream stream = nullptr;
    if (api.cuStreamCreate(&stream, 0) != CUDA_SUCCESS ||
        api.cuStreamDestroy(stream) != CUDA_SUCCESS) {
      FAIL("stream ", i);
    }
  }
  CHECK(api.cuStreamDestroy(second) == CUDA_SUCCESS);
}

TEST_CASE("sim event: time passes between records") {
  CurrentDevice device;
  const DriverApi& api = device.api;
  CUevent start = nullptr, end = nullptr, untimed = nullptr;
  REQUIRE(api.cuEventCreate(&start, CU_EVENT_DEFAULT) == CUDA_SUCCESS);
  REQUIRE(api.cuEventCreate(&end, CU_EVENT_BLOCKING_SYNC) == CUDA_SUCCESS);
  REQUIRE(api.cuEventCreate(&untimed, CU_EVENT_DISABLE_TIMING) == CUDA_SUCCESS);
  CHECK(api.cuEventCreate(&end, 64) == CUDA_ERROR_INVALID_VALUE);
  CHECK(api.cuEventQuery(start) == CUDA_SUCCESS);
  float milliseconds = -1;
  CHECK(api.cuEventElapsedTime(&milliseconds, start, end) == CUDA_ERROR_INVALID_HANDLE);
  CHECK(api.cuEventRecord(start, nullptr) == CUDA_SUCCESS);
  CHECK(api.cuCtxSynchronize() == CUDA_SUCCESS);
  std::this_thread::sleep_for(std::chrono::milliseconds(5));
  CHECK(api.cuEventRecord(end, kStreamPerThread) == CUDA_SUCCESS);
  CHECK(api.cuEventSynchronize(end) == CUDA_SUCCESS);
  CHECK(api.cuEventElapsedTime(&milliseconds, start, end) == CUDA_SUCCESS);
  CHECK(milliseconds >= 5.0f);
  CHECK(milliseconds < 5000.0f);
  CHECK(api.cuEventElapsedTime(&milliseconds, end, start) == CUDA_SUCCESS);
  CHECK(milliseconds <= -5.0f);
  CHECK(api.cuEventRecord(untimed, nullptr) == CUDA_SUCCESS);
  CHECK(api.cuEventElapsedTime(&milliseconds, start, untimed) == CUDA_ERROR_INVALID_HANDLE);
  CHECK(api.cuStreamWaitEvent(nullptr, end, 0) == CUDA_SUCCESS);
  CHECK(api.cuStreamWaitEvent(nullptr, nullptr, 0) == CUDA_ERROR_INVALID_HANDLE);
  CHECK(api.cuEventRecord(nullptr, nullptr) == CUDA_ERROR_INVALID_HANDLE);
  for (const CUevent event : {start, end, untimed})
    CHECK(api.cuEventDestroy(event) == CUDA_SUCCESS);
  CHECK(api.cuEventQuery(start) == CUDA_ERROR_INVALID_HANDLE);
}

TEST_CASE("sim stream: host functions run, and may not call the driver") {
  CurrentDevice device;
  struct State {
    const DriverApi* api;
    int calls = 0;
    CUresult inside = CUDA_ERROR_UNKNOWN;
  } state{&device.api};
  const CUhostFn function = [](void* data) {
    auto& s = *static_cast<State*>(data);
    ++s.calls;
    CUdeviceptr address = 0;
    s.inside = s.api->cuMemAlloc(&address, 16);
    s.api->cuMemFree(address);
  };
  CHECK(device.api.cuLaunchHostFunc(nullptr, function, &state) == CUDA_SUCCESS);
  CHECK(device.api.cuStreamSynchronize(nullptr) == CUDA_SUCCESS);
  CHECK(state.calls == 1);
  CHECK(state.inside == CUDA_ERROR_NOT_PERMITTED);
  CHECK(device.api.cuLaunchHostFunc(nullptr, nullptr, &state) == CUDA_ERROR_INVALID_VALUE);
}
