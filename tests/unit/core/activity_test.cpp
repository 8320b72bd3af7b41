// Recordings of activities: nothing is recorded outside, and failures leave no trace.
#include "core/activity.h"

#include "base/errors.h"
#include "core/arguments.h"
#include "core/device.h"
#include "core/graph/graph.h"
#include "unit/core/fake_driver.h"

#include <doctest/doctest.h>

#include <thread>

using namespace kernwright;
using testing::FakeDriver;
using testing::fresh_device;

namespace {

Kernel make_kernel(Device& device) {
  FakeDriver::get().kernels = {{.name = "fill", .parameter_sizes = {4}}};
  KernelSignature signature{.name = "fill", .lowered = "fill", .parameters = {}};
  signature.parameters = {{.name = "n", .type = "int", .scalar = ScalarType::int32}};
  return {Module::load(device, ".version 8.0"), signature};
}

}  // namespace

TEST_CASE("activity: launches between begin and end, with their configuration and line") {
  Device& device = fresh_device();
  const Kernel kernel = make_kernel(device);
  launch(kernel, {}, 1);
  CHECK(FakeDriver::get().calls("cuEventRecord") == 0);
  const auto recording = ActivityRecording::begin();
  CHECK(is_recording_activity());
  launch(kernel, {.grid = {3, 2, 1}, .block = {64, 1, 1}, .shared_bytes = 16}, 1);
  launch(kernel, {}, 2);
  const std::vector<Activity> list = recording->end();
  CHECK_FALSE(is_recording_activity());
  REQUIRE(list.size() == 2);
  CHECK(list[0].kind == Activity::Kind::kernel);
  CHECK(list[0].name == "fill");
  CHECK(list[0].device == &device);
  CHECK(list[0].grid == Dim3{3, 2, 1});
  CHECK(list[0].bytes == 16);
  CHECK(list[0].device_ms > 0);
  CHECK(list[0].begin_ms < list[1].begin_ms);
  CHECK(list[0].host_begin_ms <= list[1].host_begin_ms);
  CHECK(list[0].site.to_string().find("activity_test.cpp") != std::string::npos);
  const int events = FakeDriver::get().calls("cuEventRecord");
  launch(kernel, {}, 3);
  CHECK(FakeDriver::get().calls("cuEventRecord") == events);
  CHECK(recording->end().empty());
}

TEST_CASE("activity: one recording at a time; a dropped one ends") {
  const auto recording = ActivityRecording::begin();
  CHECK_THROWS_AS(ActivityRecording::begin(), Error);
  CHECK(recording->end().empty());
  ActivityRecording::begin();
  CHECK_FALSE(is_recording_activity());
  ActivityRecording::begin()->end();
}

TEST_CASE("activity: what fails is not recorded, what a capture records has no time") {
  Device& device = fresh_device();
  const Kernel kernel = make_kernel(device);
  const Stream stream = Stream::create(device);
  Graph graph(device);
  const auto recording = ActivityRecording::begin();
  FakeDriver::get().fail("cuLaunchKernelEx", CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES);
  CHECK_THROWS_AS(launch(kernel, {}, 1), DriverError);
  graph.capture(stream, [&] { launch(kernel, {.stream = stream}, 1); });
  graph.launch(stream);
  const std::vector<Activity> list = recording->end();
  REQUIRE(list.size() == 2);
  CHECK(list[0].device_ms < 0);
  CHECK(list[1].kind == Activity::Kind::graph);
  CHECK(list[1].device_ms > 0);
}

TEST_CASE("activity: threads record into one list") {
  Device& device = fresh_device();
  const Kernel kernel = make_kernel(device);
  const auto recording = ActivityRecording::begin();
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&] {
      for (int i = 0; i < 50; ++i) launch(kernel, {}, i);
    });
  }
  for (std::thread& thread : threads) thread.join();
  CHECK(recording->end().size() == 200);
}
