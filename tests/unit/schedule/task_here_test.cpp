// Tasks of a thread's own work, and launches as tasks.
#include "schedule/task_here.h"

#include "base/errors.h"
#include "core/device.h"
#include "memory/transfer_engine.h"
#include "schedule/scheduler.h"
#include "unit/core/error_text.h"
#include "unit/core/fake_driver.h"

#include <doctest/doctest.h>

#include <memory>
#include <thread>

using namespace kernwright;
using namespace kernwright::schedule;
using namespace std::chrono_literals;
using testing::contains;
using testing::FakeDriver;
using testing::fresh_device;
using testing::message_of;

TEST_CASE("task here: reserves while it lives, and has the class of its copies") {
  Scheduler scheduler(fresh_device(), {.memory = 1000, .background = false});
  CHECK(thread_transfer_class() == TransferClass::normal);
  TaskPointer task;
  {
    const auto here = scheduler.open({.qos = Qos::best_effort, .memory = {{600, 600}}});
    task = here->task();
    CHECK(task->state() == TaskState::running);
    CHECK(scheduler.stats().reserved.memory == 600);
    CHECK(thread_transfer_class() == TransferClass::best_effort);
    {
      const auto inner = scheduler.open({.qos = Qos::guaranteed});
      CHECK(thread_transfer_class() == TransferClass::urgent);
    }
    // Nothing but this thread could give the memory back.
    CHECK(contains(message_of<InvalidArgument>([&] {
                     scheduler.open({.memory = {{500, 500}}});
                   }),
                   "cannot begin now"));
  }
  CHECK(thread_transfer_class() == TransferClass::normal);
  scheduler.drain();
  CHECK(task->state() == TaskState::done);
  CHECK(scheduler.stats().reserved == Amount{});
  CHECK_THROWS_AS(scheduler.open({.memory = {{2000, 2000}}}), Refused);
  CHECK_THROWS_AS(scheduler.open({.after = {task}}), InvalidArgument);
}

TEST_CASE("task here: a failure is the task's, and its end comes once") {
  Scheduler scheduler(fresh_device(), {.memory = 1000, .background = false});
  const auto here = scheduler.open({.memory = {{10, 10}}});
  const TaskPointer task = here->task();
  here->end(std::make_exception_ptr(Error("planned")));
  here->end();
  scheduler.drain();
  CHECK(task->state() == TaskState::failed);
  CHECK(message_of<Error>([&] { scheduler.result(task); }) == "planned");
  FakeDriver::get().fail("cuEventRecord", CUDA_ERROR_UNKNOWN);
  CHECK_THROWS_AS(scheduler.open({.memory = {{10, 10}}}), DriverError);
  scheduler.drain();
  CHECK(scheduler.stats().reserved == Amount{});
  CHECK(scheduler.stats().classes[0].failed == 2);
}

TEST_CASE("task here: waits until another task gives memory back") {
  Scheduler scheduler(fresh_device(), {.memory = 1000});
  auto first = scheduler.open({.memory = {{600, 600}}});
  std::thread other([&] { scheduler.open({.memory = {{600, 600}}})->end(); });
  while (scheduler.live().size() < 2) std::this_thread::yield();
  CHECK(scheduler.live().back()->state() == TaskState::queued);
  first.reset();
  other.join();
  scheduler.drain();
  CHECK(scheduler.stats().classes[0].done == 2);
}
