// The process-wide runtime: registration, the current device of a thread.
#include "core/runtime.h"

#include "base/errors.h"
#include "core/device.h"
#include "unit/core/fake_driver.h"
#include "unit/core/test_device.h"

#include <doctest/doctest.h>

#include <thread>

using namespace kernwright;

TEST_CASE("runtime: one per process, with the simulated device beside the others") {
  Device& device = testing::test_device();
  CHECK(&Runtime::get() == &Runtime::get());
  CHECK(Runtime::get().device("sim").is_simulated());
  CHECK(&Runtime::get().device("sim:0") == &Runtime::get().device("sim"));
  CHECK(&Runtime::get().device(device.label()) == &device);
  CHECK(Runtime::get().devices().size() >= 1);
  CHECK(&Runtime::get().device(0) == Runtime::get().devices().front());
  CHECK_THROWS_AS(Runtime::get().device(1000), DeviceNotFound);
  CHECK_THROWS_AS(Runtime::get().device("tpu"), DeviceNotFound);
}

TEST_CASE("runtime: drivers cannot be exchanged once devices are listed") {
  testing::test_device();
  CHECK_THROWS_AS(Runtime::override_cuda(nullptr), Error);
  CHECK_THROWS_AS(
      Runtime::register_sim([]() -> const DriverApi& { return testing::FakeDriver::get().api(); }),
      Error);
}

TEST_CASE("runtime: the current device belongs to the thread") {
  Device& device = testing::test_device();
  Runtime& runtime = Runtime::get();
  CHECK(runtime.thread_device() == nullptr);
  Device& first = runtime.current_device();
  runtime.set_current_device(device);
  CHECK(&runtime.current_device() == &device);
  CHECK(runtime.thread_device() == &device);
  Device* seen_elsewhere = nullptr;
  bool set_elsewhere = true;
  std::thread([&] {
    set_elsewhere = runtime.thread_device() != nullptr;
    seen_elsewhere = &runtime.current_device();
  }).join();
  CHECK_FALSE(set_elsewhere);
  CHECK(seen_elsewhere == &first);
  runtime.clear_thread_device();
  CHECK(&runtime.current_device() == &first);
}
