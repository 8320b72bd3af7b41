// The findings of the recording decorator, over a small driver with numbers as handles.
#include "driver/recording_driver.h"

#include "base/errors.h"
#include "unit/core/error_text.h"

#include <doctest/doctest.h>

#include <atomic>
#include <thread>

using namespace kernwright;
using testing::contains;

namespace {

// The driver below: handles are counted up, every call succeeds unless next_result says otherwise.
std::atomic<std::uintptr_t> last_handle{0x1000};
CUcontext current = nullptr;
CUresult next_result = CUDA_SUCCESS;

template <typename Handle>
CUresult make(Handle* handle) {
  if (next_result != CUDA_SUCCESS) return next_result;
  const std::uintptr_t number = last_handle += 0x10;
  if constexpr (std::is_pointer_v<Handle>) {
    *handle = reinterpret_cast<Handle>(number);
  } else {
    *handle = number;
  }
  return CUDA_SUCCESS;
}

CUcontext context_of(CUdevice device) {
  return reinterpret_cast<CUcontext>(std::uintptr_t{0x100} + static_cast<unsigned>(device));
}

DriverApi counting_driver() {
  DriverApi api;
  api.cuCtxGetCurrent = [](CUcontext* context) { return *context = current, CUDA_SUCCESS; };
  api.cuCtxSetCurrent = [](CUcontext context) { return current = context, CUDA_SUCCESS; };
  api.cuDevicePrimaryCtxRetain = [](CUcontext* context, CUdevice device) {
    return *context = context_of(device), CUDA_SUCCESS;
  };
  api.cuDevicePrimaryCtxRelease = [](CUdevice) { return CUDA_SUCCESS; };
  api.cuStreamCreate = [](CUstream* stream, unsigned) { return make(stream); };
  api.cuStreamDestroy = [](CUstream) { return next_result; };
  api.cuStreamSynchronize = [](CUstream) { return CUDA_SUCCESS; };
  api.cuEventCreate = [](CUevent* event, unsigned) { return make(event); };
  api.cuEventDestroy = [](CUevent) { return CUDA_SUCCESS; };
  api.cuModuleLoadData = [](CUmodule* module, const void*) { return make(module); };
  api.cuModuleUnload = [](CUmodule) { return CUDA_SUCCESS; };
  api.cuModuleGetFunction = [](CUfunction* function, CUmodule, const char*) {
    return make(function);
  };
  api.cuLaunchKernelEx = [](const CUlaunchConfig*, CUfunction, void**, void**) {
    return CUDA_SUCCESS;
  };
  api.cuMemAlloc = [](CUdeviceptr* address, std::size_t) { return make(address); };
  api.cuMemFree = [](CUdeviceptr) { return CUDA_SUCCESS; };
  api.cuMemAllocAsync = [](CUdeviceptr* address, std::size_t, CUstream) { return make(address); };
  api.cuMemFreeAsync = [](CUdeviceptr, CUstream) { return CUDA_SUCCESS; };
  api.cuMemHostAlloc = [](void** address, std::size_t, unsigned) { return make(address); };
  api.cuMemFreeHost = [](void*) { return CUDA_SUCCESS; };
  api.cuMemHostRegister = [](void*, std::size_t, unsigned) { return CUDA_SUCCESS; };
  api.cuMemHostUnregister = [](void*) { return CUDA_SUCCESS; };
  return api;
}

/// A recorder over the driver above, with device 0's context current.
struct Recorded {
  Recorded() {
    next_result = CUDA_SUCCESS;
    api.cuDevicePrimaryCtxRetain(&context, 0);
    api.cuCtxSetCurrent(context);
  }
  /// The problems once the context was given back.
  std::vector<std::string> finish() {
    api.cuDevicePrimaryCtxRelease(0);
    return recorder.check();
  }

  RecordingDriver recorder{counting_driver()};
  const DriverApi& api = recorder.api();
  CUcontext context = nullptr;
};

}  // namespace

TEST_CASE("recording driver: a tidy program has no problems") {
  Recorded recorded;
  const DriverApi& api = recorded.api;
  CUstream stream = nullptr;
  CUevent event = nullptr;
  CUmodule module = nullptr;
  CUfunction function = nullptr;
  CUdeviceptr memory = 0;
  CUdeviceptr ordered = 0;
  void* host = nullptr;
  int own = 0;
  api.cuStreamCreate(&stream, 0);
  api.cuEventCreate(&event, 0);
  api.cuModuleLoadData(&module, "");
  api.cuModuleGetFunction(&function, module, "f");
  api.cuMemAlloc(&memory, 4);
  api.cuMemAllocAsync(&ordered, 4, stream);
  api.cuMemHostAlloc(&host, 4, 0);
  api.cuMemHostRegister(&own, sizeof own, 0);
  CUlaunchConfig config{};
  config.hStream = stream;
  CHECK(api.cuLaunchKernelEx(&config, function, nullptr, nullptr) == CUDA_SUCCESS);
  CHECK(recorded.recorder.live_objects() == 8);
  api.cuMemHostUnregister(&own);
  api.cuMemFreeHost(host);
  api.cuMemFreeAsync(ordered, stream);
  api.cuMemFree(memory);
  api.cuModuleUnload(module);
  api.cuEventDestroy(event);
  api.cuStreamDestroy(stream);
  CHECK(recorded.finish().empty());
  CHECK(recorded.recorder.live_objects() == 0);
  CHECK(recorded.recorder.calls("cuStreamCreate") == 1);
  CHECK(recorded.recorder.calls("cuMemcpyAsync") == 0);
  CHECK_THROWS_AS(recorded.recorder.calls("cuNothing"), NameNotFound);
}

TEST_CASE("recording driver: what was never destroyed is told by kind, maker and context") {
  Recorded recorded;
  CUevent event = nullptr;
  recorded.api.cuEventCreate(&event, 0);
  const auto problems = recorded.finish();
  REQUIRE(problems.size() == 2);
  CHECK(contains(problems[0], "cuDevicePrimaryCtxRelease on device 0 took away the context of"));
  CHECK(contains(problems[1], "never destroyed: event"));
  CHECK(contains(problems[1], "made by cuEventCreate on context 0x100"));
}

TEST_CASE("recording driver: a context that is kept, or given back too often") {
  Recorded recorded;
  CHECK(contains(recorded.recorder.check().at(0), "never released: primary context 0x100"));
  CHECK(recorded.finish().empty());
  recorded.api.cuDevicePrimaryCtxRelease(0);
  CHECK(contains(recorded.recorder.check().at(0), "was not retained"));
}

TEST_CASE("recording driver: destroyed twice, or never made") {
  Recorded recorded;
  CUstream stream = nullptr;
  CUdeviceptr memory = 0;
  recorded.api.cuStreamCreate(&stream, 0);
  recorded.api.cuStreamDestroy(stream);
  recorded.api.cuStreamDestroy(stream);
  recorded.api.cuMemAlloc(&memory, 1);
  recorded.api.cuMemFree(memory);
  recorded.api.cuMemFree(memory);
  recorded.api.cuMemFree(0xbad0);
  recorded.api.cuMemFree(0);
  const auto problems = recorded.finish();
  REQUIRE(problems.size() == 3);
  CHECK(contains(problems[0], "cuStreamDestroy used stream"));
  CHECK(contains(problems[1], "destroyed before"));
  CHECK(contains(problems[2], "0xbad0, which was never made"));
}

TEST_CASE("recording driver: destroyed on the wrong context") {
  Recorded recorded;
  CUmodule module = nullptr;
  void* host = nullptr;
  recorded.api.cuModuleLoadData(&module, "");
  recorded.api.cuMemHostAlloc(&host, 1, 0);
  recorded.api.cuCtxSetCurrent(context_of(1));
  recorded.api.cuModuleUnload(module);
  recorded.api.cuMemFreeHost(host);  // belongs to no context
  const auto problems = recorded.finish();
  REQUIRE(problems.size() == 1);
  CHECK(contains(problems[0], "cuModuleUnload of module"));
  CHECK(contains(problems[0], "while context 0x101 was current"));
}

TEST_CASE("recording driver: use after destruction, also of a module's functions") {
  Recorded recorded;
  const DriverApi& api = recorded.api;
  CUstream stream = nullptr;
  CUmodule module = nullptr;
  CUfunction function = nullptr;
  CUdeviceptr memory = 0;
  api.cuStreamCreate(&stream, 0);
  api.cuModuleLoadData(&module, "");
  api.cuModuleGetFunction(&function, module, "f");
  api.cuMemAllocAsync(&memory, 1, stream);
  api.cuModuleUnload(module);
  api.cuStreamDestroy(stream);
  api.cuStreamSynchronize(stream);
  api.cuMemFreeAsync(memory, stream);
  CUlaunchConfig config{};
  config.hStream = stream;
  api.cuLaunchKernelEx(&config, function, nullptr, nullptr);
  api.cuStreamSynchronize(nullptr);
  const auto problems = recorded.finish();
  REQUIRE(problems.size() == 4);
  CHECK(contains(problems[0], "cuStreamSynchronize used stream"));
  CHECK(contains(problems[1], "cuMemFreeAsync used stream"));
  CHECK(contains(problems[2], "cuLaunchKernelEx used function"));
  CHECK(contains(problems[3], "cuLaunchKernelEx used stream"));
}

TEST_CASE("recording driver: failed calls count, but make and destroy nothing") {
  Recorded recorded;
  CUstream stream = nullptr;
  next_result = CUDA_ERROR_OUT_OF_MEMORY;
  CHECK(recorded.api.cuStreamCreate(&stream, 0) == CUDA_ERROR_OUT_OF_MEMORY);
  CHECK(recorded.recorder.live_objects() == 1);
  next_result = CUDA_SUCCESS;
  recorded.api.cuStreamCreate(&stream, 0);
  next_result = CUDA_ERROR_NOT_READY;
  recorded.api.cuStreamDestroy(stream);
  CHECK(recorded.recorder.live_objects() == 2);
  next_result = CUDA_SUCCESS;
  recorded.api.cuStreamDestroy(stream);
  CHECK(recorded.recorder.calls("cuStreamCreate") == 2);
  CHECK(recorded.finish().empty());
}

TEST_CASE("recording driver: memory may be freed in either way") {
  Recorded recorded;
  CUdeviceptr first = 0;
  CUdeviceptr second = 0;
  recorded.api.cuMemAllocAsync(&first, 1, nullptr);
  recorded.api.cuMemAlloc(&second, 1);
  recorded.api.cuMemFree(first);
  recorded.api.cuMemFreeAsync(second, nullptr);
  CHECK(recorded.finish().empty());
}

TEST_CASE("recording driver: one at a time, and the table outlives it") {
  const DriverApi* api = nullptr;
  {
    const RecordingDriver recorder{counting_driver()};
    api = &recorder.api();
    CHECK_THROWS_AS(RecordingDriver{counting_driver()}, Error);
    CHECK(api->cuCtxSetCurrent(nullptr) == CUDA_SUCCESS);
    // Slots of the inner table without a function still return NOT_SUPPORTED.
    CHECK(api->cuCtxSynchronize() == CUDA_ERROR_NOT_SUPPORTED);
  }
  CHECK(api->cuCtxSetCurrent(nullptr) == CUDA_ERROR_DEINITIALIZED);
  RecordingDriver again{counting_driver()};
  CHECK(again.calls("cuCtxSetCurrent") == 0);
  again.api().cuCtxSetCurrent(nullptr);
  CHECK(again.calls("cuCtxSetCurrent") == 1);
  again.reset();
  CHECK(again.calls("cuCtxSetCurrent") == 0);
}

TEST_CASE("recording driver: threads may work through it") {
  Recorded recorded;
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&] {
      for (int i = 0; i < 300; ++i) {
        CUdeviceptr memory = 0;
        recorded.api.cuMemAlloc(&memory, 1);
        recorded.api.cuMemFree(memory);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  CHECK(recorded.recorder.calls("cuMemAlloc") == 1200);
  CHECK(recorded.finish().empty());
}
