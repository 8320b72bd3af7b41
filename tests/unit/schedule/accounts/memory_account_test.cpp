// Two schedulers of one device promise no byte of it twice.
#include "schedule/accounts/memory_account.h"

#include "base/errors.h"
#include "core/device.h"
#include "schedule/scheduler.h"
#include "unit/core/error_text.h"
#include "unit/core/fake_driver.h"

#include <doctest/doctest.h>

#include <memory>
#include <string>
#include <utility>

using namespace kernwright;
using namespace kernwright::schedule;
using namespace std::chrono_literals;
using testing::contains;
using testing::FakeDriver;
using testing::fresh_device;
using testing::message_of;

namespace {

TaskPointer submit(Scheduler& scheduler, std::uint64_t bytes, std::string name = {}) {
  return scheduler.submit({.memory = {{bytes, bytes}}, .name = std::move(name)},
                          make_work([](const Stream&) {}));
}

}  // namespace

TEST_CASE("memory account: what is held is not free, and is measured again without holders") {
  const auto account = std::make_shared<MemoryAccount>(100);
  CHECK(account->reserve(60));
  CHECK_FALSE(account->reserve(41));
  account->measure(1000);
  CHECK(account->capacity() == 100);
  {
    const auto apart = MemoryAccount::set_apart(account, ~std::uint64_t{0});
    CHECK(account->held() == 160);  // set apart whether or not it is free
    CHECK(account->free() == 0);
    CHECK_FALSE(account->reserve(1));
  }
  CHECK(account->free() == 40);
  account->give_back(60);
  account->measure(1000);
  CHECK(account->free() == 1000);
}

TEST_CASE("memory account: one of each device, as long as somebody has it") {
  Device& device = fresh_device();
  auto first = memory_account(device);
  CHECK(first->capacity() == device.memory_info().free);
  CHECK(first->reserve(1));
  CHECK(memory_account(device) == first);
  first.reset();
  CHECK(memory_account(device)->held() == 0);
}

TEST_CASE("memory account: tasks of two schedulers reserve from the same bytes") {
  Device& device = fresh_device();
  Scheduler first(device, {.background = false}), second(device, {.background = false});
  const std::uint64_t whole = device.memory_info().free;
  CHECK(second.stats().capacity.memory == whole);
  FakeDriver::get().fail("cuEventQuery", CUDA_ERROR_NOT_READY, 3);
  const TaskPointer large = submit(first, whole / 2 + 1, "large");
  CHECK(first.step());
  const TaskPointer other = submit(second, whole / 2, "other");
  CHECK_FALSE(second.step());
  CHECK(first.stats().reserved.memory == whole / 2 + 1);
  CHECK(second.stats().reserved.memory == 0);
  CHECK(contains(second.explain(other), "; other schedulers of the device hold "));
  CHECK(contains(message_of<InvalidArgument>([&] { second.wait(other); }), "other schedulers"));
  CHECK(submit(second, whole + 1)->state() == TaskState::refused);
  first.drain();
  CHECK(second.step());
  second.drain();
  CHECK(other->state() == TaskState::done);
}

TEST_CASE("memory account: bytes of a scheduler with a number are set apart until it is closed") {
  Device& device = fresh_device();
  const std::uint64_t whole = device.memory_info().free;
  Scheduler rest(device, {.background = false}), part(device, {.memory = whole - 100});
  const TaskPointer task = submit(rest, 101);
  CHECK_FALSE(rest.step());
  rest.result(rest.submit({}, make_work([](const Stream&) {})));
  part.result(submit(part, whole - 100));
  CHECK_FALSE(rest.step());
  part.close();
  CHECK(rest.step());
  rest.drain();
  CHECK(task->state() == TaskState::done);
}

TEST_CASE("memory account: threads see that another scheduler gave memory back") {
  Device& device = fresh_device();
  const std::uint64_t whole = device.memory_info().free;
  FakeDriver::get().partition_groups = 4;
  Scheduler first(device), second(device);
  for (const Qos qos : kAllClasses) {
    auto part = first.partition(8, {.memory = whole / 2 + 1});
    const TaskPointer task = second.submit({.qos = qos, .memory = {{whole / 2, whole / 2}}},
                                           make_work([](const Stream&) {}));
    CHECK_FALSE(second.wait(task, 3ms));
    part.reset();
    CHECK(second.wait(task, 20s));
  }
}
