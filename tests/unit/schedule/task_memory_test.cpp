// The limit of a task's memory, and its place as the resource of new arrays.
#include "schedule/task_memory.h"

#include "base/errors.h"
#include "core/device.h"
#include "memory/buffer.h"
#include "memory/resource_scope.h"
#include "unit/core/error_text.h"
#include "unit/core/fake_driver.h"

#include <doctest/doctest.h>

#include <memory>
#include <thread>

using namespace kernwright;
using namespace kernwright::schedule;
using testing::contains;
using testing::fresh_device;
using testing::message_of;

TEST_CASE("task memory: counts its own arrays alone, and names its user") {
  Device& device = fresh_device();
  const auto plain = std::make_shared<DeviceResource>(device);
  const auto memory = std::make_shared<TaskMemory>(plain, 1000, "\"a\" (task 1)");
  const Buffer other(plain, 5000, {});
  {
    const Buffer first(memory, 600, {});
    const auto text = message_of<OutOfMemory>([&] { Buffer(memory, 500, {}); });
    CHECK(contains(text, "\"a\" (task 1): "));
    CHECK(contains(text, "over the limit of 1000 bytes; 600 bytes used"));
    CHECK_FALSE(contains(text, "5000"));
    CHECK(memory->used() == 600);
    const Buffer second(memory, 400, {});
    CHECK(memory->peak() == 1000);
  }
  CHECK(memory->used() == 0);
  CHECK(memory->peak() == 1000);
  CHECK_THROWS_AS(TaskMemory(plain, 0, "b"), InvalidArgument);
}

TEST_CASE("task memory: an array may outlive the task") {
  Device& device = fresh_device();
  auto memory = std::make_shared<TaskMemory>(std::make_shared<DeviceResource>(device), 1000, "a");
  auto buffer = std::make_unique<Buffer>(memory, 600, Stream());
  memory.reset();
  buffer.reset();
  CHECK(testing::FakeDriver::get().live("memory") == 0);
}

TEST_CASE("resource scope: of one thread, one device, until its end") {
  Device& device = fresh_device();
  const auto usual = default_resource(device);
  const auto first = std::make_shared<DeviceResource>(device);
  const auto second = std::make_shared<DeviceResource>(device);
  {
    const ResourceScope outer(first);
    CHECK(default_resource(device) == first);
    {
      const ResourceScope inner(second);
      CHECK(default_resource(device) == second);
      const ResourceScope nothing(nullptr);
      CHECK(default_resource(device) == second);
      std::thread([&] { CHECK(default_resource(device) == usual); }).join();
    }
    CHECK(default_resource(device) == first);
    CHECK(default_resource(*testing::fake_registry().devices()[1]) != first);
  }
  CHECK(default_resource(device) == usual);
}
