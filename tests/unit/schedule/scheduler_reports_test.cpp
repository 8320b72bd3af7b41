// What users of other schedulers reported, by steps on a driver of the test.
#include "core/device.h"
#include "memory/buffer.h"
#include "memory/memory_resource.h"
#include "schedule/scheduler.h"
#include "unit/core/fake_driver.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <random>
#include <span>
#include <string>
#include <vector>

using namespace kernwright;
using namespace kernwright::schedule;
using namespace std::chrono_literals;
using testing::FakeDriver;
using testing::fresh_device;

TEST_CASE("scheduler reports: a limit holds under every policy") {
  for (const std::string& name : policy_names()) {
    CAPTURE(name);
    const auto clock = std::make_shared<ManualClock>();
    clock->advance(10ms);
    Scheduler scheduler(
        fresh_device(),
        {.memory = 1000, .policy = policy_named(name), .clock = clock, .background = false});
    std::vector<TaskPointer> tasks;
    for (int i = 0; i < 3; ++i) {
      tasks.push_back(
          scheduler.submit({.qos = Qos::best_effort, .share = {{0.05, 0.1}}, .model = "m"},
                           make_work([](const Stream&) {})));
    }
    CHECK(scheduler.step());
    CHECK_FALSE(scheduler.step());  // more than its 10 % of the time so far
    clock->advance(100ms);
    CHECK(scheduler.step());
    for (int i = 0; i < 2; ++i) {
      tasks.push_back(scheduler.submit({.memory = {{600, 600}}}, make_work([](const Stream&) {})));
    }
    FakeDriver::get().fail("cuEventQuery", CUDA_ERROR_NOT_READY, 3);
    CHECK(scheduler.step());
    CHECK_FALSE(scheduler.step());  // 600 of 1000 bytes are reserved
    clock->advance(1s);
    scheduler.drain();
  }
}

TEST_CASE("scheduler reports: accounts of models that do not come back are dropped") {
  auto clock = std::make_shared<ManualClock>();
  Device& device = fresh_device();
  Scheduler scheduler(device, {.memory = 1 << 30, .clock = clock, .background = false, .kept = 4});
  std::optional<Buffer> array;
  const auto use = [&](std::string model, const std::function<void(const Stream&)>& work) {
    scheduler.submit({.memory = {{1 << 20, 1 << 20}}, .model = std::move(model)}, make_work(work));
    scheduler.drain();
  };
  const auto has = [&](std::string_view model) {
    const auto tenants = scheduler.stats().tenants;
    return std::any_of(tenants.begin(), tenants.end(),
                       [&](const TenantStats& tenant) { return tenant.name == model; });
  };
  const auto use_many = [&](int count) {
    for (int i = 0; i < count; ++i) {
      use(std::to_string(i), [](const Stream&) {});
      clock->advance(100ms);
    }
  };
  use("with an array",
      [&](const Stream& stream) { array.emplace(default_resource(device), 4096, stream); });
  use("of the last second", [](const Stream&) {});
  use_many(9);
  CHECK(has("of the last second"));  // its limit counts what it used
  use_many(100);
  CHECK_FALSE(has("of the last second"));
  CHECK(has("99"));
  CHECK(has("with an array"));
  CHECK(scheduler.stats().tenants.size() <= 16);
  array.reset();
  use_many(100);
  CHECK_FALSE(has("with an array"));
}

TEST_CASE("scheduler reports: memory that best effort freed keeps no urgent task waiting") {
  FakeDriver& driver = FakeDriver::get();
  Device& device = fresh_device();
  Scheduler scheduler(device, {.memory = 1000, .background = false});
  CUdeviceptr freed = 0, taken = 0, again = 0;
  const auto allocate = [&](CUdeviceptr& address) {
    return make_work([&](const Stream& stream) {
      address = Buffer(default_resource(device), 1 << 20, stream).address();
    });
  };
  // The work of best effort is not done, nor is that behind its free().
  driver.fail("cuEventQuery", CUDA_ERROR_NOT_READY, 1 << 20);
  scheduler.submit({.qos = Qos::best_effort}, allocate(freed));
  scheduler.step();
  const int waits = driver.calls("cuStreamWaitEvent");
  const int stops = driver.calls("cuEventSynchronize") + driver.calls("cuStreamSynchronize");
  scheduler.submit({}, allocate(taken));
  scheduler.step();
  CHECK(taken != 0);
  CHECK(taken != freed);
  CHECK(driver.calls("cuStreamWaitEvent") == waits);
  CHECK(driver.calls("cuEventSynchronize") + driver.calls("cuStreamSynchronize") == stops);
  // The next task of best effort has it again at once.
  scheduler.submit({.qos = Qos::best_effort}, allocate(again));
  scheduler.submit({.qos = Qos::best_effort}, allocate(again));
  while (scheduler.step()) {}
  CHECK(again == freed);
  driver.fail("cuEventQuery", CUDA_ERROR_NOT_READY, 1, 1 << 30);
  scheduler.drain();
}

TEST_CASE("scheduler reports: a task inside of which another one is awaited lends its class") {
  Scheduler scheduler(fresh_device(), {.memory = 1000, .background = false});
  std::vector<std::string> order;
  const auto named = [&](const char* name) {
    return make_work([&order, name](const Stream&) { order.emplace_back(name); });
  };
  const TaskPointer low = scheduler.submit({.qos = Qos::best_effort}, named("low"));
  const TaskPointer first = scheduler.submit({.qos = Qos::best_effort}, named("first"));
  const TaskPointer next =
      scheduler.submit({.qos = Qos::best_effort, .after = {first}}, named("next"));
  scheduler.submit({.qos = Qos::burstable}, named("between"));
  scheduler.submit({.priority = 1}, make_work([&](const Stream&) {
                     scheduler.result(next);
                     CHECK(next->qos() == Qos::guaranteed);
                     CHECK(first->qos() == Qos::guaranteed);
                     CHECK(low->qos() == Qos::best_effort);
                   }));
  scheduler.drain();
  CHECK(order == std::vector<std::string>{"first", "next", "between", "low"});
}

TEST_CASE("scheduler reports: a refused task leaves no account, and those before as they were") {
  Scheduler scheduler(fresh_device(), {.memory = 1000, .share = 0.5, .background = false});
  const auto submit = [&](TaskSpec spec) {
    return scheduler.submit(std::move(spec), make_work([](const Stream&) {}));
  };
  for (int i = 0; i < 3; ++i) {
    CHECK(submit({.share = {{0.9, 1}}})->state() == TaskState::refused);
    CHECK(submit({.memory = {{2000, 2000}}, .model = "m"})->state() == TaskState::refused);
  }
  CHECK(scheduler.stats().tenants.empty());
  scheduler.result(submit({.share = {{0.25, 1}}, .model = "m"}));
  CHECK(submit({.share = {{0.9, 1}}, .model = "m"})->state() == TaskState::refused);
  REQUIRE(scheduler.stats().tenants.size() == 1);
  CHECK(scheduler.stats().tenants[0].share == 0.25);
}

TEST_CASE("scheduler reports: equal tasks go in the order of their accounts, not of addresses") {
  struct First final : Policy {
    std::string name() const override { return "first"; }
    std::optional<std::size_t> choose(std::span<const Candidate>, const Load&) override {
      return 0;
    }
  };
  Scheduler scheduler(
      fresh_device(),
      {.memory = 1000, .policy = std::make_shared<First>(), .background = false, .kept = 0});
  std::vector<std::string> models = {"a", "b", "c", "d", "e", "f", "g", "h"};
  std::mt19937 random(1);
  for (int round = 1; round < 20; ++round) {
    std::shuffle(models.begin(), models.end(), random);
    std::vector<std::string> order;
    const double share = round / 1000.0;  // another share is a new account, in memory freed before
    for (const std::string& model : models) {
      scheduler.submit({.share = {{share, 1}}, .model = model},
                       make_work([&, model](const Stream&) { order.push_back(model); }));
    }
    scheduler.drain();
    CHECK(order == models);
  }
}
