// Kernels compiled on first use.
#include <doctest/doctest.h>

#include <thread>

#include "base/errors.h"
#include "core/device.h"
#include "jit/program.h"
#include "unit/core/fake_driver.h"
#include "unit/jit/jit_fixture.h"

using namespace kernwright;
using namespace kernwright::testing;

namespace {

Device& lazy_device() {
  use_test_nvrtc();
  Device& device = fresh_device();
  FakeDriver::get().tells_parameters = false;
  FakeDriver::get().attributes[CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR] = 9;
  FakeDriver::get().attributes[CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR] = 0;
  FakeDriver::get().kernels = {{"_Z4onlyPf", {8}}};
  return device;
}

std::string name_refusal(const std::string& text) {
  return thrown_by<NameNotFound>([&] { kernel(text); }).what();
}

}  // namespace

TEST_CASE("lazy kernel: the only kernel needs no name") {
  const LazyKernel only = kernel("__global__ void only(float* x) { *x = 1; }");
  CHECK(only.name() == "only");
  CHECK(kernel("namespace a { __global__ void only() {} }").name() == "a::only");
}

TEST_CASE("lazy kernel: none, two, or a template want a name") {
  CHECK(contains(name_refusal("__device__ int x;"), "declares no __global__"));
  const std::string two = name_refusal("__global__ void a() {} __global__ void b() {}");
  CHECK(contains(two, "a, b"));
  CHECK(contains(two, "2 __global__"));
  CHECK(contains(name_refusal("template <class T> __global__ void t(T x) {}"), "t<float>"));
}

TEST_CASE("lazy kernel: making one compiles nothing, errors come with the first use") {
  const LazyKernel wrong = kernel("__global__ void k() { syntax error }");
  Device& device = lazy_device();
  CHECK_THROWS_AS(wrong.on(device), CompileError);
  CHECK_THROWS_AS(wrong.on(device), CompileError);
}

TEST_CASE("lazy kernel: loaded once per device, the same object each time") {
  Device& device = lazy_device();
  const LazyKernel only = kernel("__global__ void only(float* x) { *x = 2; }");
  const Kernel& first = only.on(device);
  const LazyKernel copy = only;
  CHECK(&copy.on(device) == &first);
  CHECK(&first.device() == &device);
  CHECK(FakeDriver::get().live("module") == 1);
  CHECK(only.object_code(device)->kernel("only").to_string() == "only(float* x)");
  CHECK(FakeDriver::get().live("module") == 1);
}

TEST_CASE("lazy kernel: object code is to be had without loading") {
  Device& device = lazy_device();
  const LazyKernel only = kernel("__global__ void only(float* x) { *x = 3; }");
  CHECK(only.object_code(device)->arch == "sm_90");
  CHECK(FakeDriver::get().live("module") == 0);
}

TEST_CASE("lazy kernel: knows which layer had its code, whatever else was asked for since") {
  Device& device = lazy_device();
  const std::string text = "__global__ void only(float* x) { *x = 5; }";
  const LazyKernel first = kernel(text), second = kernel(text);
  first.on(device);
  second.on(device);
  kernel("__global__ void only(float* x) { *x = 6; }").on(device);
  CHECK(first.found_code(device).layer == CodeLayer::compiler);
  CHECK(second.found_code(device).layer == CodeLayer::memory);
  const LazyKernel given(Program(*first.object_code(device), "given"), "only");
  CHECK(given.found_code(device).layer == CodeLayer::none);
  given.on(device);
  CHECK(given.found_code(device).layer == CodeLayer::none);
}

TEST_CASE("lazy kernel: threads that meet at the first use get one kernel") {
  Device& device = lazy_device();
  const LazyKernel only = kernel("__global__ void only(float* x) { *x = 4; }");
  std::vector<const Kernel*> kernels(8);
  std::vector<std::thread> threads;
  for (std::size_t i = 0; i < kernels.size(); ++i) {
    threads.emplace_back([&, i] { kernels[i] = &only.on(device); });
  }
  for (std::thread& thread : threads) thread.join();
  for (const Kernel* each : kernels) CHECK(each == kernels[0]);
  CHECK(FakeDriver::get().live("module") == 1);
}
