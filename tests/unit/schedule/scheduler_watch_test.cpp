// How the ends of tasks are seen: few calls of the driver, and nobody forgotten.
#include "base/errors.h"
#include "core/device.h"
#include "schedule/scheduler.h"
#include "unit/core/fake_driver.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <atomic>
#include <bit>
#include <chrono>
#include <memory>
#include <optional>
#include <random>
#include <span>
#include <string>
#include <thread>
#include <vector>

using namespace kernwright;
using namespace kernwright::schedule;
using namespace std::chrono_literals;
using testing::FakeDriver;
using testing::fresh_device;

namespace {

constexpr int kLanes = 3;         ///< of guaranteed tasks
constexpr double kStep = 1.5e-3;  ///< seconds of the fake device from one mark to the next

/// A scheduler without threads and with so many tasks on the device, none known to be done.
struct Issued {
  explicit Issued(int count)
      : scheduler(fresh_device(),
                  {.memory = 1000, .background = false, .most_running = {400, 400, 400}}) {
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

TEST_CASE("scheduler watch: few tasks of a stream are asked when all are done") {
  for (const int count : {30, 96, 300}) {
    CAPTURE(count);
    Issued issued(count);
    CHECK(issued.count(TaskState::running) == count);
    // The oldest, then by halves.
    CHECK(issued.calls("cuEventQuery") <= kLanes * (1 + std::bit_width(unsigned(count / kLanes))));
    CHECK(issued.count(TaskState::done) == count);
  }
}

TEST_CASE("scheduler watch: the context is set once for all questions") {
  Issued issued(300);
  CHECK(issued.calls("cuCtxSetCurrent") < 10);
  CHECK(issued.count(TaskState::done) == 300);
}

TEST_CASE("scheduler watch: many ends together take one question about time a task") {
  constexpr int kTasks = 30;
  Scheduler scheduler(fresh_device(), {.memory = 1000});
  FakeDriver& driver = FakeDriver::get();
  driver.fail("cuEventQuery", CUDA_ERROR_NOT_READY, 1 << 20);
  std::vector<TaskPointer> tasks;
  for (int i = 0; i < kTasks; ++i) tasks.push_back(scheduler.submit({}, nothing()));
  driver.fail("cuEventQuery", CUDA_ERROR_NOT_READY, 1, 1 << 30);
  scheduler.drain();
  CHECK(driver.calls("cuEventElapsedTime") <= kTasks + 2 * kLanes);
  Time sum(0);
  for (const TaskPointer& task : tasks) {
    CHECK(scheduler.stats(task).device > Time(0));
    sum += scheduler.stats(task).device;
  }
  // Streams that run at once are not charged for more time than has passed.
  const double passed = kStep * driver.calls("cuEventRecord");
  CHECK(seconds(sum) <= passed);
  CHECK(seconds(sum) > passed / 2);
}

TEST_CASE("scheduler watch: tasks of a device that keeps up take one question each, too") {
  constexpr int kTasks = 30;
  Scheduler scheduler(fresh_device(),
                      {.memory = 1000, .background = false, .most_running = {400, 400, 400}});
  for (int i = 0; i < kLanes; ++i) scheduler.submit({}, nothing());
  scheduler.drain();
  FakeDriver& driver = FakeDriver::get();
  driver.fail("cuEventQuery", CUDA_ERROR_NOT_READY, 1 << 20);
  const int marks = driver.calls("cuEventRecord"), questions = driver.calls("cuEventElapsedTime");
  std::vector<TaskPointer> tasks;
  for (int i = 0; i < kTasks; ++i) {
    tasks.push_back(scheduler.submit({}, nothing()));
    scheduler.step();
  }
  REQUIRE(driver.calls("cuEventRecord") - marks == 2 * kTasks);  // each has its own beginning
  driver.fail("cuEventQuery", CUDA_ERROR_NOT_READY, 1, 1 << 30);
  scheduler.drain();
  CHECK(driver.calls("cuEventElapsedTime") - questions <= kTasks + 2 * kLanes);
  for (const TaskPointer& task : tasks) {
    CHECK(seconds(scheduler.stats(task).device) == doctest::Approx(kStep));
  }
}

TEST_CASE("scheduler watch: tasks at once on an idle device share the time that passed") {
  Scheduler scheduler(fresh_device(), {.memory = 1000, .background = false});
  scheduler.submit({}, nothing());
  scheduler.drain();
  FakeDriver& driver = FakeDriver::get();
  Event mark(scheduler.device(), true);
  for (int i = 0; i < 100; ++i) mark.record({});  // the device was idle for a while
  driver.fail("cuEventQuery", CUDA_ERROR_NOT_READY, 1 << 20);
  const int marks = driver.calls("cuEventRecord");
  const auto outer = scheduler.submit({}, make_work([&](const Stream&) { scheduler.step(); }));
  const auto inner = scheduler.submit({}, nothing());
  scheduler.step();
  REQUIRE(driver.calls("cuEventRecord") - marks == 4);
  driver.fail("cuEventQuery", CUDA_ERROR_NOT_READY, 1, 1 << 30);
  scheduler.drain();
  const Time sum = scheduler.stats(outer).device + scheduler.stats(inner).device;
  CHECK(seconds(sum) == doctest::Approx(3 * kStep));
  CHECK(scheduler.stats(outer).device > scheduler.stats(inner).device);
}

TEST_CASE("scheduler watch: the end of a long task takes no time from short ones") {
  Scheduler scheduler(fresh_device(), {.memory = 1000, .background = false});
  FakeDriver& driver = FakeDriver::get();
  std::vector<TaskPointer> tasks;
  const auto outer = scheduler.submit({}, make_work([&](const Stream&) {
                                        for (int i = 0; i < 20; ++i) {
                                          // The end of the last one is seen together with this.
                                          if (i == 19)
                                            driver.fail("cuEventQuery", CUDA_ERROR_NOT_READY);
                                          tasks.push_back(scheduler.submit({}, nothing()));
                                          scheduler.step();
                                        }
                                      }));
  scheduler.step();
  scheduler.drain();
  for (const TaskPointer& task : tasks) {
    const bool is_last = task == tasks.back();
    CHECK(seconds(scheduler.stats(task).device) == doctest::Approx(is_last ? 0.75 * kStep : kStep));
  }
  CHECK(seconds(scheduler.stats(outer).device) == doctest::Approx(2.25 * kStep));
}

TEST_CASE("scheduler watch: tasks in the work of another one share the time of all streams") {
  Scheduler scheduler(fresh_device(), {.memory = 1000, .background = false});
  scheduler.submit({}, nothing());
  scheduler.drain();
  FakeDriver& driver = FakeDriver::get();
  driver.fail("cuEventQuery", CUDA_ERROR_NOT_READY, 1 << 20);
  const int marks = driver.calls("cuEventRecord");
  std::vector<TaskPointer> tasks;
  tasks.push_back(scheduler.submit({}, make_work([&](const Stream&) {
                                     for (int i = 0; i < kLanes; ++i) {  // one on its own stream
                                       tasks.push_back(scheduler.submit({}, nothing()));
                                       scheduler.step();
                                     }
                                   })));
  scheduler.step();
  REQUIRE(driver.calls("cuEventRecord") - marks == 2 + 2 * kLanes);
  driver.fail("cuEventQuery", CUDA_ERROR_NOT_READY, 1, 1 << 30);
  scheduler.drain();
  Time sum(0);
  for (const TaskPointer& task : tasks) sum += scheduler.stats(task).device;
  CHECK(seconds(sum) == doctest::Approx((1 + 2 * kLanes) * kStep));
}

TEST_CASE("scheduler watch: two schedulers charge no more than the time that passed") {
  for (unsigned seed = 1; seed <= 60; ++seed) {
    CAPTURE(seed);
    std::minstd_rand random(seed);
    const auto below = [&](unsigned count) { return static_cast<unsigned>(random() % count); };
    Device& device = fresh_device();
    FakeDriver& driver = FakeDriver::get();
    const SchedulerOptions options{.memory = 1000, .background = false};
    Scheduler schedulers[] = {Scheduler(device, options), Scheduler(device, options)};
    std::vector<TaskPointer> tasks[2];
    for (int i = 0; i < 60; ++i) {
      const unsigned which = below(2), kind = below(8);
      Scheduler& scheduler = schedulers[which];
      const auto work = [&scheduler, kind](const Stream&) {
        if (kind == 0) throw InvalidArgument("a task that fails");
        if (kind < 4) scheduler.step();
      };
      const TaskPointer task = scheduler.submit({.qos = kAllClasses[below(2)]}, make_work(work));
      tasks[which].push_back(task);
      if (kind == 4) scheduler.cancel(task);
      if (below(3) == 0) driver.fail("cuEventQuery", CUDA_ERROR_NOT_READY, 1 + int(below(9)));
      if (below(20) == 0) driver.fail("cuEventElapsedTime", CUDA_ERROR_UNKNOWN);
      if (below(3) != 0) scheduler.step();
    }
    for (const unsigned which : {0U, 1U}) {
      schedulers[which].drain();
      Time sum(0);
      for (const TaskPointer& task : tasks[which]) {
        CHECK(schedulers[which].stats(task).device >= Time(0));
        sum += schedulers[which].stats(task).device;
      }
      CHECK(seconds(sum) > 0);
      CHECK(seconds(sum) <= kStep * driver.calls("cuEventRecord") * 1.0001);
      CHECK(schedulers[which].stats().reserved == Amount{});
    }
  }
}

TEST_CASE("scheduler watch: beside much work the stream in front is marked, not asked") {
  Scheduler scheduler(fresh_device(), {.memory = 1000});
  FakeDriver& driver = FakeDriver::get();
  driver.fail("cuEventQuery", CUDA_ERROR_NOT_READY, 1 << 20);
  for (int i = 0; i < 30; ++i) scheduler.submit({}, nothing());
  CHECK(driver.calls("cuStreamQuery") < 20);
  CHECK(driver.calls("cuStreamWaitEvent") > 10);
  driver.fail("cuEventQuery", CUDA_ERROR_NOT_READY, 1, 1 << 30);
  scheduler.drain();
  const int before = driver.calls("cuStreamQuery");
  std::this_thread::sleep_for(10ms);  // such a time is over 2 ms behind the last task
  scheduler.submit({}, nothing());
  CHECK(driver.calls("cuStreamQuery") == before + 1);
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

TEST_CASE("scheduler watch: threads sleep while the first task waits for memory") {
  /// The default one, with a count of its choices.
  struct Counting final : Policy {
    std::string name() const override { return "counting"; }
    std::optional<std::size_t> choose(std::span<const Candidate> tasks, const Load& load) override {
      ++choices;
      return known->choose(tasks, load);
    }
    const std::shared_ptr<Policy> known = make_default_policy();
    std::atomic<int> choices = 0;
  };
  const auto policy = std::make_shared<Counting>();
  Scheduler scheduler(fresh_device(), {.memory = 1000, .policy = policy});
  std::atomic<bool> go = false;
  const auto holder = scheduler.submit({.qos = Qos::best_effort, .memory = {{900, 900}}},
                                       make_work([&](const Stream&) {
                                         while (!go) std::this_thread::sleep_for(1ms);
                                       }));
  while (holder->state() != TaskState::running) std::this_thread::sleep_for(1ms);
  std::vector<TaskPointer> tasks;
  for (const Qos qos : kAllClasses) {
    tasks.push_back(scheduler.submit({.qos = qos, .memory = {{200, 200}}}, nothing()));
  }
  const auto free = scheduler.submit({.qos = Qos::best_effort}, nothing());
  CHECK(ends_in_time(free));  // it asks for nothing
  const int before = policy->choices;
  std::this_thread::sleep_for(50ms);
  CHECK(policy->choices - before < 50);
  go = true;
  for (const TaskPointer& task : tasks) CHECK(ends_in_time(task));
}

TEST_CASE("scheduler watch: a thread that waits by sleeping asks the driver nothing itself") {
  static std::thread::id waiter;
  static std::atomic<int> questions;
  static std::atomic<bool> is_done;
  waiter = std::this_thread::get_id();
  questions = 0;
  is_done = false;
  FakeDriver::get().reset();
  DriverApi api = FakeDriver::get().api();
  api.cuEventQuery = [](CUevent) {
    if (std::this_thread::get_id() == waiter) ++questions;
    return is_done ? CUDA_SUCCESS : CUDA_ERROR_NOT_READY;
  };
  DeviceRegistry registry({.cuda = &api, .cuda_reason = {}, .sim = nullptr, .wanted = "auto"});
  Scheduler scheduler(registry.by_index(0), {.memory = 1000});
  const TaskPointer task = scheduler.submit({}, nothing());
  CHECK_FALSE(scheduler.wait(task, 5ms));
  CHECK(questions > 0);
  questions = 0;
  CHECK_FALSE(scheduler.wait(task, 5ms, WaitBy::sleeping));
  CHECK(questions == 0);
  is_done = true;
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
