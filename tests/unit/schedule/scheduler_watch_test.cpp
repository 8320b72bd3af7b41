// How the ends of tasks are seen: few calls of the driver, and nobody forgotten.
#include "core/device.h"
#include "schedule/scheduler.h"
#include "unit/core/fake_driver.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <thread>
#include <vector>

using namespace kernwright;
using namespace kernwright::schedule;
using namespace std::chrono_literals;
using testing::FakeDriver;
using testing::fresh_device;

namespace {

constexpr int kLanes = 3;  ///< of guaranteed tasks

/// A scheduler without threads and with so many tasks on the device, none known to be done.
struct Issued {
  explicit Issued(int count) : scheduler(fresh_device(), {.memory = 1000, .background = false}) {
    FakeDriver::get().fail("cuEventQuery", CUDA_ERROR_NOT_READY, 1 << 20);
    for (int i = 0; i < count; ++i) {
      tasks.push_back(scheduler.submit({}, make_work([](const Stream&) {})));
      scheduler.step();
    }
    FakeDriver::get().fail("cuEventQuery", CUDA_ERROR_NOT_READY, 1, 1 << 30);
  }
  /// Calls of the function by drain().
  int calls(const char* function) {
    const int before = FakeDriver::get().calls(function);
    scheduler.drain();
    return FakeDriver::get().calls(function) - before;
  }
  auto count(TaskState state) const {
    return std::count_if(tasks.begin(), tasks.end(),
                         [&](const TaskPointer& task) { return task->state() == state; });
  }

  Scheduler scheduler;
  std::vector<TaskPointer> tasks;
};

bool ends_in_time(const TaskPointer& task) {
  const auto until = std::chrono::steady_clock::now() + 20s;
  while (!task->is_over() && std::chrono::steady_clock::now() < until) {
    std::this_thread::sleep_for(1ms);
  }
  return task->is_over();
}

std::unique_ptr<Work> nothing() {
  return make_work([](const Stream&) {});
}

}  // namespace

TEST_CASE("scheduler watch: each task is asked once when all are done") {
  Issued issued(30);
  CHECK(issued.count(TaskState::running) == 30);
  CHECK(issued.calls("cuEventQuery") == 30);
  CHECK(issued.count(TaskState::done) == 30);
}

TEST_CASE("scheduler watch: a task that is not done keeps those behind it, and no others") {
  for (int asked = 1; asked < 5; ++asked) {
    CAPTURE(asked);
    Issued issued(8 * kLanes);
    // On the first stream the oldest is done; of the next questions one says no.
    FakeDriver::get().fail("cuEventQuery", CUDA_ERROR_NOT_READY, 1, asked);
    issued.scheduler.wait(issued.tasks.front());
    const auto done = issued.count(TaskState::done);
    CHECK(done < 8 * kLanes);
    CHECK(done >= 1);
    for (std::size_t i = kLanes; i < issued.tasks.size(); ++i) {
      const bool is_done = issued.tasks[i]->state() == TaskState::done;
      CHECK((!is_done || issued.tasks[i - kLanes]->state() == TaskState::done));
    }
    issued.scheduler.drain();
    CHECK(issued.count(TaskState::done) == 8 * kLanes);
  }
}

TEST_CASE("scheduler watch: a beginning is marked only where the stream has no work before it") {
  FakeDriver& driver = FakeDriver::get();
  const Issued issued(30);
  CHECK(driver.calls("cuEventRecord") == 30 + kLanes);
}

TEST_CASE("scheduler watch: ends that nobody waits for are seen, too, and callbacks come") {
  Scheduler scheduler(fresh_device(), {.memory = 1000});
  std::vector<TaskPointer> tasks;
  for (int i = 0; i < 100; ++i) {
    tasks.push_back(scheduler.submit({.memory = {{10, 10}}}, nothing()));
  }
  for (const TaskPointer& task : tasks) CHECK(ends_in_time(task));
  std::this_thread::sleep_for(80ms);  // the watching thread sleeps by now
  std::atomic<int> ends = 0;
  for (int i = 0; i < 10; ++i) {
    scheduler.at_end(scheduler.submit({.qos = kAllClasses[i % 3]}, nothing()), [&] { ++ends; });
  }
  const TaskPointer last = scheduler.submit({}, nothing());
  CHECK(ends_in_time(last));
  scheduler.drain();
  CHECK(ends == 10);
  CHECK(scheduler.stats().reserved == Amount{});
}

TEST_CASE("scheduler watch: a callback may submit, wait and drain") {
  Scheduler scheduler(fresh_device(), {.memory = 1000});
  std::atomic<int> ends = 0;
  const auto follow = [&](Qos qos) {
    const TaskPointer next = scheduler.submit({.qos = qos}, nothing());
    ends += scheduler.wait(next, 20s) ? 1 : 0;
  };
  for (const Qos qos : kAllClasses) {
    scheduler.at_end(scheduler.submit({.qos = qos}, nothing()), [&, qos] { follow(qos); });
  }
  std::atomic<bool> is_drained = false;
  scheduler.at_end(scheduler.submit({}, nothing()), [&] {
    scheduler.drain();
    is_drained = true;
  });
  const auto until = std::chrono::steady_clock::now() + 20s;
  while ((ends != kClasses || !is_drained) && std::chrono::steady_clock::now() < until) {
    std::this_thread::sleep_for(1ms);
  }
  CHECK(ends == kClasses);
  CHECK(is_drained);
}

TEST_CASE("scheduler watch: a class whose tasks are done has room at once") {
  Scheduler scheduler(fresh_device(), {.memory = 1000, .most_running = {2, 2, 2}});
  for (int i = 0; i < 50; ++i) {
    CHECK(scheduler.submit({}, nothing())->state() != TaskState::queued);
  }
  for (int i = 0; i < 50; ++i) {  // and so has the budget
    const auto task = scheduler.submit({.qos = Qos::burstable, .memory = {{600, 600}}}, nothing());
    CHECK(task->state() != TaskState::queued);
  }
}

TEST_CASE("scheduler watch: tasks that wait for the memory of a partition begin when it is gone") {
  FakeDriver& driver = FakeDriver::get();
  Device& device = fresh_device();
  driver.partition_groups = 4;
  Scheduler scheduler(device, {.memory = 1000});
  scheduler.result(scheduler.submit({.qos = Qos::best_effort}, nothing()));
  auto part = scheduler.partition(8, {.memory = 600});
  const TaskPointer task = scheduler.submit({.memory = {{600, 600}}}, nothing());
  CHECK_FALSE(scheduler.wait(task, 5ms));
  part.reset();
  CHECK(scheduler.wait(task, 20s));
}
