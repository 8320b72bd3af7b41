// Calls that compile their kernels at the same time and launch none of them.
#include "jit/compile_only.h"

#include <doctest/doctest.h>

#include <latch>
#include <string>
#include <vector>

#include "base/errors.h"
#include "core/device.h"
#include "core/stream.h"
#include "jit/program.h"
#include "unit/core/fake_driver.h"
#include "unit/jit/jit_fixture.h"
#include "unit/jit/watched_service.h"

using namespace kernwright;
using namespace kernwright::testing;

namespace {

Device& only_device() {
  use_test_nvrtc();
  Device& device = fresh_device();
  FakeDriver::get().tells_parameters = false;
  FakeDriver::get().attributes[CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR] = 9;
  FakeDriver::get().attributes[CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR] = 0;
  FakeDriver::get().kernels = {{"_Z4onlyv", {}}, {"compiled_later", {}}};
  return device;
}

Program new_program(const std::string& more = {}) {
  return kernel("__global__ void only() { volatile float x = " + new_number() + "e0; }" + more)
      .program();
}

/// As the library has them: its compile may wait.
LazyKernel library_kernel(const std::string& more = {}) {
  return LazyKernel(new_program(more), "only", std::vector<std::string>{});
}

int launches() { return FakeDriver::get().calls("cuLaunchKernelEx"); }

}  // namespace

TEST_CASE("compile only: kernels of several calls compile at the same time, and none is launched") {
  if (one_processor()) return;
  Device& device = only_device();
  std::latch both(2);
  const CompileWatch watch([&](const std::string&) { both.arrive_and_wait(); });
  const LazyKernel first = library_kernel(), second = library_kernel();
  const LaunchConfig config{.grid = {1}, .block = {32}, .stream = Stream::legacy(device)};
  const int before = launches();
  {
    CompileOnly scope;
    CHECK(CompileOnly::current() == &scope);
    const Kernel& stand_in = first.on(device);
    CHECK(&stand_in == &second.on(device));
    CHECK(&stand_in == &first.on(device));  // asked for twice, compiled once
    stand_in.launch(config, {});
    scope.finish();
    CHECK(watch.service.compiles == 2);
    CHECK(&first.on(device) != &stand_in);
    first.on(device).launch(config, {});
    CHECK(launches() == before);
    {
      const CompileOnly::Pause pause;
      first.on(device).launch(config, {});
      CHECK(launches() == before + 1);
    }
    second.on(device).launch(config, {});
    CHECK(launches() == before + 1);
  }
  CHECK(CompileOnly::current() == nullptr);
  CHECK(watch.service.compiles == 2);
}

TEST_CASE("compile only: users' kernels are compiled at once, with their own parameters") {
  Device& device = only_device();
  const LazyKernel mine(new_program(), "only");
  const CompileOnly scope;
  const Kernel& made = mine.on(device);
  CHECK(&made == mine.find(device));
  CHECK(made.signature().name == "only");
}

TEST_CASE("compile only: the first kernel that fails is the error, and the scope ends") {
  Device& device = only_device();
  const LazyKernel good = library_kernel(), bad = library_kernel(" syntax error here");
  {
    CompileOnly scope;
    good.on(device);
    bad.on(device);
    CHECK_THROWS_AS(scope.finish(), CompileError);
    CHECK(good.find(device) != nullptr);
    CHECK(bad.find(device) == nullptr);
  }
  CHECK(CompileOnly::current() == nullptr);
  CHECK_THROWS_AS(bad.on(device), CompileError);
}
