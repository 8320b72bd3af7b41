// Planned faults: the failing call, its error, and the answers of a broken context.
#include "driver/fault_driver.h"

#include "base/errors.h"
#include "driver/fault_nvrtc.h"
#include "driver/recording_driver.h"

#include <doctest/doctest.h>

#include <atomic>
#include <chrono>
#include <thread>
#include <vector>

using namespace kernwright;

namespace {

// The driver below counts the calls it gets; contexts are those of devices 0 and 1.
std::atomic<int> real_calls = 0;
thread_local CUcontext current = nullptr;

CUcontext context_of(CUdevice device) {
  return reinterpret_cast<CUcontext>(std::uintptr_t{0x100} + static_cast<unsigned>(device));
}

DriverApi counting_driver() {
  DriverApi api;
  api.cuCtxGetCurrent = [](CUcontext* context) { return *context = current, CUDA_SUCCESS; };
  api.cuCtxSetCurrent = [](CUcontext context) { return current = context, CUDA_SUCCESS; };
  api.cuCtxGetDevice = [](CUdevice* device) {
    *device = current == context_of(1) ? 1 : 0;
    return CUDA_SUCCESS;
  };
  api.cuDevicePrimaryCtxReset = [](CUdevice) { return CUDA_SUCCESS; };
  api.cuDeviceGetCount = [](int* count) { return *count = 2, CUDA_SUCCESS; };
  api.cuCtxSynchronize = [] { return ++real_calls, CUDA_SUCCESS; };
  api.cuMemFree = [](CUdeviceptr) { return ++real_calls, CUDA_SUCCESS; };
  api.cuMemAlloc = [](CUdeviceptr* address, std::size_t) {
    ++real_calls;
    return *address = 0x1000, CUDA_SUCCESS;
  };
  return api;
}

struct Faulty {
  Faulty() {
    real_calls = 0;
    current = context_of(0);
  }
  const DriverApi inner = counting_driver();
  FaultDriver driver{inner};
  const DriverApi& api = driver.api();
  CUdeviceptr address = 0;
};

FaultPlan plan(std::string function, std::uint64_t call, CUresult result) {
  FaultPlan made;
  made.function = std::move(function);
  made.call = call;
  made.result = result;
  return made;
}

}  // namespace

TEST_CASE("fault driver: without a plan it changes nothing, and counts") {
  Faulty it;
  for (int i = 0; i < 3; ++i) CHECK(it.api.cuCtxSynchronize() == CUDA_SUCCESS);
  CHECK(real_calls == 3);
  CHECK(it.driver.calls("cuCtxSynchronize") == 3);
  CHECK(it.driver.calls() == 3);
  CHECK(it.driver.fired() == 0);
  CHECK(it.driver.last_function().empty());
  CHECK_THROWS_AS((void)it.driver.calls("cuNothing"), NameNotFound);
  CHECK_THROWS_AS(it.driver.arm(plan("cuNothing", 1, CUDA_ERROR_UNKNOWN)), NameNotFound);
  CHECK_THROWS_AS(FaultDriver{it.inner}, Error);
}

TEST_CASE("fault driver: the Nth call of one function fails, once") {
  Faulty it;
  it.driver.arm(plan("cuCtxSynchronize", 2, CUDA_ERROR_UNKNOWN));
  CHECK(it.api.cuMemAlloc(&it.address, 1) == CUDA_SUCCESS);
  CHECK(it.api.cuCtxSynchronize() == CUDA_SUCCESS);
  CHECK(it.api.cuMemAlloc(&it.address, 1) == CUDA_SUCCESS);
  CHECK(it.api.cuCtxSynchronize() == CUDA_ERROR_UNKNOWN);
  CHECK(it.api.cuCtxSynchronize() == CUDA_SUCCESS);
  CHECK(real_calls == 4);
  CHECK(it.driver.fired() == 1);
  CHECK(it.driver.last_function() == "cuCtxSynchronize");
  CHECK(it.driver.failed_functions() == std::set<std::string>{"cuCtxSynchronize"});
}

TEST_CASE("fault driver: the Nth call of all functions together fails, for ever") {
  Faulty it;
  FaultPlan forever = plan("", 2, CUDA_ERROR_OUT_OF_MEMORY);
  forever.repeat = FaultPlan::Repeat::forever;
  it.driver.arm(forever);
  CHECK(it.api.cuMemAlloc(&it.address, 1) == CUDA_SUCCESS);
  CHECK(it.api.cuCtxSynchronize() == CUDA_ERROR_OUT_OF_MEMORY);
  CHECK(it.api.cuMemFree(it.address) == CUDA_ERROR_OUT_OF_MEMORY);
  CHECK(it.driver.fired() == 2);
  it.driver.disarm();
  CHECK(it.api.cuMemFree(it.address) == CUDA_SUCCESS);
  CHECK(it.driver.failed_functions().size() == 2);
  it.driver.arm(plan("cuMemFree", 1, CUDA_ERROR_UNKNOWN));
  CHECK(it.driver.fired() == 0);
}

TEST_CASE("fault driver: a fault after the call has taken place, and a slow one") {
  Faulty it;
  FaultPlan after = plan("cuMemFree", 1, CUDA_ERROR_LAUNCH_FAILED);
  after.moment = FaultPlan::Moment::after;
  after.delay = std::chrono::milliseconds(20);
  it.driver.arm(after);
  const auto begin = std::chrono::steady_clock::now();
  CHECK(it.api.cuMemFree(1) == CUDA_ERROR_LAUNCH_FAILED);
  CHECK(std::chrono::steady_clock::now() - begin >= std::chrono::milliseconds(20));
  CHECK(real_calls == 1);
}

TEST_CASE("fault driver: a sticky fault breaks its context alone, until the device is reset") {
  Faulty it;
  FaultPlan sticky = plan("cuCtxSynchronize", 1, CUDA_ERROR_ILLEGAL_ADDRESS);
  sticky.sticky = true;
  it.driver.arm(sticky);
  CHECK(it.api.cuCtxSynchronize() == CUDA_ERROR_ILLEGAL_ADDRESS);
  CHECK(it.api.cuMemFree(1) == CUDA_ERROR_ILLEGAL_ADDRESS);
  CHECK(it.api.cuCtxSynchronize() == CUDA_ERROR_ILLEGAL_ADDRESS);
  CHECK(it.driver.fired() == 1);
  CHECK(real_calls == 0);
  int count = 0;
  CHECK(it.api.cuDeviceGetCount(&count) == CUDA_SUCCESS);

  CHECK(it.api.cuCtxSetCurrent(context_of(1)) == CUDA_SUCCESS);
  CHECK(it.api.cuMemFree(1) == CUDA_SUCCESS);
  CHECK(it.api.cuDevicePrimaryCtxReset(1) == CUDA_SUCCESS);
  CHECK(it.api.cuCtxSetCurrent(context_of(0)) == CUDA_SUCCESS);
  CHECK(it.api.cuMemFree(1) == CUDA_ERROR_ILLEGAL_ADDRESS);
  CHECK(it.api.cuDevicePrimaryCtxReset(0) == CUDA_SUCCESS);
  CHECK(it.api.cuMemFree(1) == CUDA_SUCCESS);
}

TEST_CASE("fault driver: every function of the table can fail") {
  Faulty it;
  FaultPlan all = plan("", 1, CUDA_ERROR_UNKNOWN);
  all.repeat = FaultPlan::Repeat::forever;
  it.driver.arm(all);
  std::set<std::string> names;
  for_each_slot(it.api, [&]<typename... P>(const DriverRow& row, CUresult (*const& slot)(P...)) {
    CAPTURE(row.name);
    CHECK(slot(P{}...) == CUDA_ERROR_UNKNOWN);
    names.insert(row.name);
  });
  CHECK(it.driver.failed_functions() == names);
  CHECK(names.size() > 100);
}

TEST_CASE("fault driver: over a recorder, a failed call creates nothing") {
  real_calls = 0;
  current = context_of(0);
  const RecordingDriver recorder(counting_driver());
  FaultDriver faults(recorder.api());
  faults.arm(plan("cuMemAlloc", 1, CUDA_ERROR_OUT_OF_MEMORY));
  CUdeviceptr address = 0;
  CHECK(faults.api().cuMemAlloc(&address, 1) == CUDA_ERROR_OUT_OF_MEMORY);
  CHECK(recorder.live_objects() == 0);
  CHECK(faults.api().cuMemAlloc(&address, 1) == CUDA_SUCCESS);
  CHECK(recorder.live_objects() == 1);
  CHECK(faults.api().cuMemFree(address) == CUDA_SUCCESS);
  CHECK(recorder.live_objects() == 0);
}

TEST_CASE("fault driver: exactly one of many threads' calls fails") {
  Faulty it;
  it.driver.arm(plan("cuCtxSynchronize", 500, CUDA_ERROR_UNKNOWN));
  std::atomic<int> failed = 0;
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&] {
      for (int k = 0; k < 250; ++k) failed += it.api.cuCtxSynchronize() != CUDA_SUCCESS;
    });
  }
  for (std::thread& thread : threads) thread.join();
  CHECK(failed == 1);
  CHECK(real_calls == 999);
  CHECK(it.driver.calls() == 1000);
}

TEST_CASE("fault driver: an observer hears each call before it happens") {
  static std::vector<std::string> heard;
  heard.clear();
  Faulty it;
  it.driver.observe([](const char* name) { heard.emplace_back(name); });
  it.api.cuCtxSynchronize();
  it.api.cuMemFree(1);
  it.driver.observe(nullptr);
  it.api.cuMemFree(1);
  CHECK(heard == std::vector<std::string>{"cuCtxSynchronize", "cuMemFree"});
}

TEST_CASE("fault nvrtc: a planned call fails, others reach the library, programs are counted") {
  NvrtcApi inner;
  inner.nvrtcCreateProgram = [](nvrtcProgram* program, const char*, const char*, int,
                                const char* const*, const char* const*) {
    *program = reinterpret_cast<nvrtcProgram>(std::uintptr_t{8});
    return NVRTC_SUCCESS;
  };
  inner.nvrtcDestroyProgram = [](nvrtcProgram*) { return NVRTC_SUCCESS; };
  inner.nvrtcGetErrorString = [](nvrtcResult) { return "text"; };
  FaultNvrtc faults(inner);
  CHECK_THROWS_AS(FaultNvrtc{inner}, Error);
  CHECK_THROWS_AS(faults.arm(plan("nvrtcNothing", 1, CUDA_ERROR_UNKNOWN)), NameNotFound);
  FaultPlan second = plan("nvrtcCreateProgram", 2, CUDA_SUCCESS);
  second.result = NVRTC_ERROR_OUT_OF_MEMORY;
  faults.arm(second);
  const NvrtcApi& api = faults.api();
  nvrtcProgram program = nullptr;
  CHECK(api.nvrtcCreateProgram(&program, "", "", 0, nullptr, nullptr) == NVRTC_SUCCESS);
  CHECK(faults.live_programs() == 1);
  CHECK(api.nvrtcCreateProgram(&program, "", "", 0, nullptr, nullptr) == NVRTC_ERROR_OUT_OF_MEMORY);
  CHECK(faults.fired() == 1);
  CHECK(faults.last_function() == "nvrtcCreateProgram");
  CHECK(faults.live_programs() == 1);
  CHECK(api.nvrtcDestroyProgram(&program) == NVRTC_SUCCESS);
  CHECK(faults.live_programs() == 0);
  CHECK(std::string(api.nvrtcGetErrorString(NVRTC_SUCCESS)) == "text");
}
