// Several kernels of one call: compiled at the same time, errors as ever, nothing left behind.
#include "jit/kernels_ahead.h"

#include <doctest/doctest.h>

#include <atomic>
#include <latch>
#include <string>

#include "base/errors.h"
#include "core/device.h"
#include "jit/compile/compile_wait.h"
#include "jit/program.h"
#include "unit/core/fake_driver.h"
#include "unit/jit/jit_fixture.h"
#include "unit/jit/watched_service.h"

using namespace kernwright;
using namespace kernwright::testing;

namespace {

Device& ahead_device() {
  use_test_nvrtc();
  Device& device = fresh_device();
  FakeDriver::get().tells_parameters = false;
  FakeDriver::get().attributes[CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR] = 9;
  FakeDriver::get().attributes[CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR] = 0;
  FakeDriver::get().kernels = {{"_Z4onlyPf", {8}}};
  return device;
}

/// One that no cache has, whose text ends in `more`.
LazyKernel new_kernel(const std::string& more = {}) {
  return kernel("__global__ void only(float* x) { *x = " + new_number() + "e0; }" + more);
}

}  // namespace

TEST_CASE("kernels ahead: two kernels of a call compile at the same time") {
  if (one_processor()) return;
  Device& device = ahead_device();
  std::latch both(2);  // a compile goes on when the other one has begun
  const CompileWatch watch([&](const std::string&) { both.arrive_and_wait(); });
  const LazyKernel first = new_kernel(), second = new_kernel();
  KernelsAhead kernels;
  kernels.begin(second, device);
  const Kernel &one = kernels.on(first, device), &other = kernels.on(second, device);
  CHECK(&one == first.find(device));
  CHECK(&other == second.find(device));
  CHECK(&second.on(device) == &other);
  CHECK(watch.service.compiles == 2);
  CHECK(FakeDriver::get().live("module") == 2);
}

TEST_CASE("kernels ahead: what was begun is loaded when asked for, by the thread that asks") {
  Device& device = ahead_device();
  const LazyKernel one = new_kernel();
  {
    KernelsAhead kernels;
    kernels.begin(one, device);
    kernels.begin(one, device);
    CHECK(FakeDriver::get().live("module") == 0);
  }
  CHECK(one.find(device) == nullptr);
  CHECK(FakeDriver::get().live("module") == 0);
  one.on(device);
  CHECK(FakeDriver::get().live("module") == 1);
}

TEST_CASE("kernels ahead: a kernel begun twice is compiled once, a loaded one not at all") {
  Device& device = ahead_device();
  const CompileWatch watch;
  const LazyKernel one = new_kernel();
  for (int i = 0; i < 2; ++i) {
    KernelsAhead kernels;
    kernels.begin(one, device);
    kernels.begin(one, device);
    kernels.on(one, device);
    kernels.on(one, device);
  }
  CHECK(watch.service.compiles == 1);
  CHECK(FakeDriver::get().live("module") == 1);
}

TEST_CASE("kernels ahead: the error of one is told where it is asked for, in the same words") {
  Device& device = ahead_device();
  const LazyKernel good = new_kernel(), wrong = new_kernel(" oops;");
  KernelsAhead kernels;
  kernels.begin(wrong, device);
  kernels.begin(good, device);
  CHECK_NOTHROW(kernels.on(good, device));
  const auto told = thrown_by<CompileError>([&] { kernels.on(wrong, device); });
  const auto expected = thrown_by<CompileError>([&] { wrong.on(device); });
  CHECK(std::string(told.what()) == expected.what());
  CHECK(told.log == expected.log);
  CHECK(contains(told.what(), "oops"));
  CHECK(FakeDriver::get().live("module") == 1);
}

TEST_CASE("kernels ahead: an error of another kernel ends the compiles nobody waits for") {
  if (one_processor()) return;
  Device& device = ahead_device();
  std::latch begun(1);
  std::atomic<bool> was_cancelled = false;
  const LazyKernel endless = new_kernel(" // endless"), wrong = new_kernel(" oops;");
  const CompileWatch watch([&](const std::string& text) {
    if (!contains(text, "endless")) return;
    begun.count_down();
    try {
      wait_for_stop();
    } catch (const Cancelled&) {
      was_cancelled = true;
      throw;
    }
  });
  const auto call = [&] {
    KernelsAhead kernels;
    kernels.begin(endless, device);
    begun.wait();
    kernels.on(wrong, device);
  };
  CHECK_THROWS_AS(call(), CompileError);
  CHECK(was_cancelled);
}
