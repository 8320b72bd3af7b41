// The whole core on the device under test: load PTX, look things up, launch, time, and go wrong.
#include "base/errors.h"
#include "core/device.h"
#include "core/event.h"
#include "core/kernel.h"
#include "core/module.h"
#include "unit/core/error_text.h"
#include "unit/core/saxpy.h"
#include "unit/core/test_device.h"

#include <doctest/doctest.h>

#include <thread>
#include <vector>

using namespace kernwright;
using testing::contains;
using testing::kSaxpyPtx;
using testing::message_of;
using testing::saxpy_signature;

namespace {

Kernel saxpy(Device& device) { return {Module::load(device, kSaxpyPtx), saxpy_signature()}; }

/// Plain device memory of floats; `memory` and `array` are layers above this one.
struct Floats {
  Floats(Device& d, const std::vector<float>& values) : device(d), count(values.size()) {
    const ContextGuard guard(device);
    device.check(device.driver().cuMemAlloc(&address, 4 * count), "cuMemAlloc");
    device.check(device.driver().cuMemcpyHtoD(address, values.data(), 4 * count), "cuMemcpyHtoD");
    // From pageable memory the copy may reach the device after the call, and non-blocking streams
    // do not wait for it.
    device.check(device.driver().cuStreamSynchronize(nullptr), "cuStreamSynchronize");
  }
  ~Floats() {
    ReleaseGuard guard(device);
    if (guard) guard.report(device.driver().cuMemFree(address), "cuMemFree");
  }
  Floats(const Floats&) = delete;
  Floats& operator=(const Floats&) = delete;
  std::vector<float> read() const {
    std::vector<float> values(count);
    const ContextGuard guard(device);
    device.check(device.driver().cuMemcpyDtoH(values.data(), address, 4 * count), "cuMemcpyDtoH");
    return values;
  }
  Device& device;
  std::size_t count;
  CUdeviceptr address = 0;
};

void launch(const Kernel& kernel, const LaunchConfig& config, float a, const Floats& x, Floats& y,
            int n, const LaunchSite& site = {}) {
  CUdeviceptr from = x.address;
  CUdeviceptr to = y.address;
  void* pointers[] = {&a, &from, &to, &n};
  kernel.launch(config, pointers, site);
}

CUcontext current_context(const Device& device) {
  CUcontext context = nullptr;
  device.driver().cuCtxGetCurrent(&context);
  return context;
}

}  // namespace

TEST_CASE("on a device: PTX runs, on the legacy stream and on one of ours, and restores contexts") {
  const testing::Recorded recorded;
  Device& device = recorded.device;
  const CUcontext before = current_context(device);
  {
    const Kernel kernel = saxpy(device);
    std::vector<float> x(1000);
    std::vector<float> y(1000);
    for (std::size_t i = 0; i < x.size(); ++i) {
      x[i] = static_cast<float>(i);
      y[i] = 1;
    }
    const Floats dx(device, x);
    Floats dy(device, y);
    launch(kernel, {.grid = {4, 1, 1}, .block = {256, 1, 1}}, 2, dx, dy, 1000);
    device.synchronize();
    const Stream stream = Stream::create(device);
    Event start(device);
    start.record(stream);
    launch(kernel, {.grid = {4, 1, 1}, .block = {256, 1, 1}, .stream = stream}, 2, dx, dy, 500);
    const Event end = stream.record();
    end.synchronize();
    CHECK(end.done());
    CHECK(stream.done());
    CHECK(end.elapsed_ms(start) >= 0);
    stream.synchronize(std::chrono::seconds(10));
    device.synchronize(std::chrono::seconds(10));
    const std::vector<float> result = dy.read();
    for (std::size_t i = 0; i < result.size(); ++i) {
      REQUIRE(result[i] == 1 + (i < 500 ? 4 : 2) * x[i]);
    }
  }
  CHECK(current_context(device) == before);
}

TEST_CASE("on a device: parameters, attributes, occupancy and variables are what the PTX says") {
  const testing::Recorded recorded;
  Device& device = recorded.device;
  const Kernel kernel = saxpy(device);
  const auto& parameters = kernel.signature().parameters;
  CHECK(parameters[1].offset == 8);
  CHECK(parameters[2].offset == 16);
  CHECK(parameters[3].offset == 24);
  CHECK(parameters[3].size == 4);
  CHECK(kernel.attributes().max_threads_per_block > 0);
  CHECK(kernel.attributes().shared_bytes == 0);
  const int block = kernel.suggest_block();
  CHECK(block >= 32);
  CHECK(block <= 1024);
  CHECK(block % 32 == 0);
  CHECK(kernel.occupancy(block) >= 1);
  const ModuleSymbol symbol = kernel.module().symbol("counters");
  CHECK(symbol.size == 64);
  CHECK(symbol.address != 0);
  CHECK_THROWS_AS(kernel.module().symbol("nothing"), NameNotFound);
  CHECK_THROWS_AS(kernel.module().function("saxpi"), NameNotFound);
  CHECK(kernel.module().function_names() == std::vector<std::string>{"saxpy"});
}

TEST_CASE("on a device: a signature with too few parameters is found out") {
  const testing::Recorded recorded;
  KernelSignature signature = saxpy_signature();
  signature.parameters.pop_back();
  CHECK_THROWS_AS(Kernel(Module::load(recorded.device, kSaxpyPtx), signature), InvalidArgument);
}

TEST_CASE("on a device: launches beyond the limits are refused before the driver") {
  const testing::Recorded recorded;
  const Kernel kernel = saxpy(recorded.device);
  CHECK(contains(message_of<LaunchConfigError>([&] {
                   kernel.check({.block = {2048, 1, 1}});
                 }),
                 "block of 2048 threads (2048 x 1 x 1): at most 1024 threads for kernel saxpy on"));
  CHECK_THROWS_AS(kernel.check({.grid = {0, 1, 1}}), LaunchConfigError);
  CHECK_THROWS_AS(kernel.check({.grid = {1, 65536, 1}}), LaunchConfigError);
  CHECK_THROWS_AS(kernel.check({.shared_bytes = 1 << 20}), LaunchConfigError);
  kernel.check({.grid = {1 << 20, 1, 1}, .block = {1024, 1, 1}});
}

TEST_CASE("on a device: dynamic shared memory up to the device's limit is opted in by itself") {
  const testing::Recorded recorded;
  Device& device = recorded.device;
  const Kernel kernel = saxpy(device);
  const Floats x(device, {1});
  Floats y(device, {1});
  const int most = device.attribute(CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN);
  for (const int bytes : {0, 49152, 50000, most}) {
    launch(kernel, {.shared_bytes = static_cast<std::uint32_t>(bytes)}, 1, x, y, 1);
  }
  device.synchronize();
  CHECK(y.read()[0] == 5);
}

TEST_CASE("on a device: images that are no code are refused with a reason") {
  const testing::Recorded recorded;
  CHECK_THROWS_AS(Module::load(recorded.device, "this is no code"), Error);
  CHECK_THROWS_AS(Module::load(recorded.device,
                               ".version 7.0\n.target sm_80\n.address_size 64\n"
                               ".visible .entry k() { bogus.u32 %r1; }\n"),
                  Error);
  CHECK_THROWS_AS(Module::load(recorded.device, ""), InvalidArgument);
  CHECK(saxpy(recorded.device).handle() != nullptr);
}

TEST_CASE("on the simulated device: a fault names kernel and line, and the device stays usable") {
  const testing::Recorded recorded;
  Device& device = recorded.device;
  if (!device.is_simulated()) return;  // on a GPU this ends the process's use of it
  const Kernel kernel = saxpy(device);
  const Floats x(device, std::vector<float>(16, 1));
  Floats y(device, std::vector<float>(16, 1));
  try {
    launch(kernel, {.block = {32, 1, 1}}, 1, x, y, 32, LaunchSite::here());
    device.synchronize();
    FAIL("nothing was thrown");
  } catch (const DeviceFault& fault) {
    CHECK(fault.report.kind == FaultKind::bounds);
    CHECK(fault.report.kernel == "saxpy");
    CHECK(contains(fault.what(), "launched as saxpy at"));
    CHECK(contains(fault.what(), "launch_on_device_test.cpp:"));
  }
  CHECK_FALSE(device.lost());
  launch(kernel, {.block = {32, 1, 1}}, 1, x, y, 16);
  device.synchronize();
}

TEST_CASE("on a device: threads make, use and drop streams, events and kernels at once") {
  const testing::Recorded recorded;
  Device& device = recorded.device;
  std::vector<std::thread> threads;
  std::atomic<int> wrong{0};
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&] {
      const Floats x(device, std::vector<float>(64, 1));
      for (int i = 0; i < 20; ++i) {
        Floats y(device, std::vector<float>(64, 1));
        const Stream stream = Stream::create(device);
        const Kernel kernel = saxpy(device);
        launch(kernel, {.block = {64, 1, 1}, .stream = stream}, 3, x, y, 64);
        const Event done = stream.record();
        stream.wait(done);
        stream.synchronize();
        if (y.read() != std::vector<float>(64, 4)) ++wrong;
      }
    });
  }
  for (auto& thread : threads) thread.join();
  CHECK(wrong == 0);
}
