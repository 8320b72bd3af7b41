// Tasks from submission to end, by steps on a clock of the test: admission, order, failures.
#include "schedule/scheduler.h"

#include "core/device.h"
#include "unit/core/error_text.h"
#include "unit/core/fake_driver.h"

#include <doctest/doctest.h>

#include <memory>
#include <random>
#include <string>
#include <vector>

using namespace kernwright;
using namespace kernwright::schedule;
using namespace std::chrono_literals;
using testing::contains;
using testing::FakeDriver;
using testing::fresh_device;
using testing::message_of;

namespace {

/// A scheduler without threads, its clock, and the names of the works in the order they ran.
struct Steps {
  explicit Steps(SchedulerOptions options = {}, Device& on = fresh_device()) : device(on) {
    options.background = false;
    options.clock = clock;
    if (options.memory == 0) options.memory = 1000;
    scheduler = std::make_unique<Scheduler>(device, std::move(options));
  }
  TaskPointer submit(TaskSpec spec, std::function<void(const Stream&)> work = {}) {
    const std::string name = spec.name;
    return scheduler->submit(std::move(spec), make_work([this, name, work](const Stream& stream) {
                               order.push_back(name);
                               if (work) work(stream);
                             }));
  }
  /// The next `times` questions about events find them not done.
  static void keep_busy(int times) {
    FakeDriver::get().fail("cuEventQuery", CUDA_ERROR_NOT_READY, times);
  }

  Device& device;
  std::shared_ptr<ManualClock> clock = std::make_shared<ManualClock>();
  std::unique_ptr<Scheduler> scheduler;
  std::vector<std::string> order;
};

/// Whether a task may go from one state to the other.
bool may_follow(TaskState from, TaskState to) {
  using enum TaskState;
  switch (from) {
    case pending:
      return to == queued || to == refused;
    case queued:
      return to == admitted || to == cancelled || to == failed;
    case admitted:
      return to == running || to == cancelled || to == failed;
    case running:
      return to == done || to == failed || to == cancelled;
    default:
      return false;
  }
}

std::vector<TaskState> states_of(const Steps& steps, const TaskPointer& task) {
  std::vector<TaskState> states;
  for (const StateChange& change : steps.scheduler->history(task)) states.push_back(change.state);
  for (std::size_t i = 1; i < states.size(); ++i) CHECK(may_follow(states[i - 1], states[i]));
  return states;
}

using enum TaskState;
using States = std::vector<TaskState>;
using Names = std::vector<std::string>;

TaskSpec memory_task(std::string name, std::uint64_t bytes, Qos qos = Qos::guaranteed) {
  return {.qos = qos, .memory = {{bytes, bytes}}, .name = std::move(name)};
}

}  // namespace

TEST_CASE("scheduler: a task passes through its states with their times") {
  Steps steps;
  const TaskPointer task = steps.submit({.name = "a"});
  CHECK(task->state() == queued);
  steps.clock->advance(3ms);
  CHECK(steps.scheduler->step());
  CHECK(task->state() == done);
  CHECK(states_of(steps, task) == States{pending, queued, admitted, running, done});
  CHECK(steps.scheduler->history(task)[3].time == Time(3ms));
  CHECK(steps.scheduler->stats(task).queued == Time(3ms));
  CHECK_FALSE(steps.scheduler->step());
  steps.scheduler->result(task);
}

TEST_CASE("scheduler: classes go in their order, each by priority and submission") {
  Steps steps;
  steps.submit({.qos = Qos::best_effort, .name = "e"});
  steps.submit({.qos = Qos::burstable, .name = "b"});
  steps.submit({.name = "g1"});
  steps.submit({.name = "g2"});
  steps.submit({.priority = 1, .name = "g0"});
  steps.scheduler->drain();
  CHECK(steps.order == Names{"g0", "g1", "g2", "b", "e"});
}

TEST_CASE("scheduler: a reservation lasts from admission to the end of the work") {
  Steps steps;
  const TaskPointer a = steps.submit(memory_task("a", 700));
  CHECK(steps.scheduler->stats().reserved.memory == 0);
  Steps::keep_busy(1);
  CHECK(steps.scheduler->step());
  CHECK(a->state() == running);
  CHECK(steps.scheduler->stats().reserved.memory == 700);
  CHECK(contains(steps.scheduler->explain(a), "queued on the device"));
  const TaskPointer b = steps.submit(memory_task("b", 400));
  const std::string why = steps.scheduler->explain(b);
  CHECK(contains(why, "400 B of memory asked, 300 B free of 1000 B"));
  CHECK(contains(why, "held by \"a\" (task 1) (700 B)"));
  CHECK_FALSE(steps.scheduler->step());
  steps.scheduler->result(b);
  CHECK(a->state() == done);
  CHECK(steps.scheduler->stats().reserved.memory == 0);
  CHECK(FakeDriver::get().live("event") > 0);
}

TEST_CASE("scheduler: what can never fit is refused, and told what would") {
  Steps steps;
  const TaskPointer task = steps.submit(memory_task("big", 1001));
  CHECK(task->state() == refused);
  CHECK(states_of(steps, task) == States{pending, refused});
  const auto text = message_of<Refused>([&] { steps.scheduler->result(task); });
  CHECK(contains(text, "\"big\" (task 1) was refused"));
  CHECK(contains(text, "at most 1000 bytes"));
  const TaskPointer late = steps.submit({.deadline = -2s, .name = "late"});
  CHECK(late->state() == refused);
  CHECK(contains(steps.scheduler->explain(late), "deadline passed 2 s before"));
  CHECK(steps.scheduler->stats().classes[0].refused == 2);
  CHECK(steps.order.empty());
}

TEST_CASE("scheduler: no one overtakes a task that waits for memory, unless it needs none") {
  Steps steps;
  steps.submit(memory_task("a", 700));
  Steps::keep_busy(4);
  steps.scheduler->step();
  steps.submit(memory_task("b", 600));
  steps.submit(memory_task("c", 100));
  steps.submit({.name = "free"});
  CHECK(steps.scheduler->step());
  CHECK_FALSE(steps.scheduler->step());
  CHECK(steps.order == Names{"a", "free"});
  steps.scheduler->drain();
  CHECK(steps.order == Names{"a", "free", "b", "c"});
}

TEST_CASE("scheduler: shares are reserved once for a model, and queue beyond the whole") {
  Steps steps;
  const auto share = [&](std::string model, double request) {
    return steps.submit({.share = {{request, 1}}, .name = model, .model = model});
  };
  const TaskPointer a = share("a", 0.75);
  const TaskPointer a2 = share("a", 0.75);
  Steps::keep_busy(8);
  steps.scheduler->step();
  steps.scheduler->step();
  CHECK(steps.scheduler->stats().reserved.share == 750'000);
  const TaskPointer b = share("b", 0.5);
  CHECK_FALSE(steps.scheduler->step());
  CHECK(contains(steps.scheduler->explain(b),
                 "a share of 0.5 asked, 0.25 free of 1; held by a (0.75)"));
  CHECK_THROWS_AS(share("a", 0.5), InvalidArgument);
  steps.scheduler->drain();
  CHECK(steps.scheduler->stats().reserved.share == 0);
  CHECK(share("a", 0.5)->state() == queued);
}

TEST_CASE("scheduler: weighted goes by device time over share") {
  // Each task takes 1.5 ms on the fake device: the time between two records.
  Steps steps({.policy = make_weighted_policy()});
  for (int i = 0; i < 40; ++i) {
    steps.submit({.share = {{0.25, 1}}, .name = "a", .model = "a"});
    steps.submit({.share = {{0.75, 1}}, .name = "b", .model = "b"});
  }
  for (int i = 0; i < 40; ++i) {
    steps.clock->advance(1ms);
    REQUIRE(steps.scheduler->step());
  }
  const auto count = std::count(steps.order.begin(), steps.order.end(), "a");
  CHECK(count >= 9);
  CHECK(count <= 11);
  for (const TenantStats& tenant : steps.scheduler->stats().tenants) CHECK(tenant.device > Time(0));
}

TEST_CASE("scheduler: a limit is a cap, also when nobody else wants the device") {
  Steps steps;
  steps.clock->advance(10ms);
  for (int i = 0; i < 3; ++i) steps.submit({.share = {{0.05, 0.1}}, .name = "a", .model = "a"});
  CHECK(steps.scheduler->step());
  CHECK_FALSE(steps.scheduler->step());
  CHECK(contains(steps.scheduler->explain(steps.scheduler->live().front()), "its limit is 10 %"));
  steps.clock->advance(100ms);
  CHECK(steps.scheduler->step());
}

TEST_CASE("scheduler: strict lets best effort run only when nothing else does") {
  Steps steps({.policy = make_strict_policy()});
  const TaskPointer low = steps.submit({.qos = Qos::best_effort, .name = "low"});
  steps.submit({.name = "high"});
  Steps::keep_busy(2);
  CHECK(steps.scheduler->step());
  CHECK_FALSE(steps.scheduler->step());
  CHECK(contains(steps.scheduler->explain(low), "the policy strict keeps its class back"));
  steps.scheduler->drain();
  CHECK(steps.order == Names{"high", "low"});
}

TEST_CASE("scheduler: what a task throws fails it, and gives everything back") {
  Steps steps;
  const TaskPointer task = steps.submit(memory_task("a", 900), [](const Stream&) {
    throw InvalidArgument("seven is no prime factor");
  });
  CHECK_THROWS_AS(steps.scheduler->result(task), InvalidArgument);
  CHECK(states_of(steps, task).back() == failed);
  CHECK(contains(steps.scheduler->explain(task), "seven is no prime factor"));
  CHECK(steps.scheduler->stats().reserved.memory == 0);
  CHECK(steps.scheduler->stats().classes[0].failed == 1);
}

TEST_CASE("scheduler: cancel takes a waiting task at once, and no work that is queued") {
  Steps steps;
  const TaskPointer a = steps.submit(memory_task("a", 900));
  CHECK(steps.scheduler->cancel(a));
  CHECK(a->state() == cancelled);
  CHECK_FALSE(steps.scheduler->cancel(a));
  CHECK_THROWS_AS(steps.scheduler->result(a), TaskCancelled);
  CHECK_FALSE(steps.scheduler->step());
  const TaskPointer b = steps.submit({.name = "b"});
  Steps::keep_busy(1);
  steps.scheduler->step();
  CHECK_FALSE(steps.scheduler->cancel(b));
  steps.scheduler->result(b);
  CHECK(steps.order == Names{"b"});
}

TEST_CASE("scheduler: a task that was cancelled in its work never ends well") {
  Steps steps;
  TaskPointer task;
  task = steps.submit(memory_task("a", 900), [&](const Stream&) { steps.scheduler->cancel(task); });
  steps.scheduler->step();
  CHECK_THROWS_AS(steps.scheduler->result(task), TaskCancelled);
  CHECK(states_of(steps, task) == States{pending, queued, admitted, running, cancelled});
  for (const StateChange& each : steps.scheduler->history(task)) CHECK_FALSE(each.reason.empty());
  CHECK(steps.scheduler->stats().reserved == Amount{});
}

TEST_CASE("scheduler: successors go behind the work of others, and fail with them") {
  Steps steps;
  const TaskPointer low = steps.submit({.qos = Qos::best_effort, .name = "low"});
  const TaskPointer next = steps.submit({.name = "next", .after = {low}});
  steps.submit({.qos = Qos::burstable, .name = "between"});
  CHECK(low->qos() == Qos::guaranteed);  // lent by the one that waits for it
  CHECK(contains(steps.scheduler->explain(low), "in the class guaranteed"));
  CHECK(contains(steps.scheduler->explain(next), "behind the work of \"low\""));
  steps.scheduler->drain();
  CHECK(steps.order == Names{"low", "next", "between"});
  const TaskPointer wrong =
      steps.submit({.name = "wrong"}, [](const Stream&) { throw Error("no"); });
  const TaskPointer second = steps.submit({.name = "second", .after = {wrong}});
  steps.scheduler->drain();
  CHECK(second->state() == failed);
  CHECK(contains(steps.scheduler->explain(second), "its predecessor \"wrong\""));
  const TaskPointer third = steps.submit({.name = "third", .after = {second}});
  CHECK(third->state() == failed);
}

TEST_CASE("scheduler: a task that waits for itself is told so") {
  Steps steps;
  TaskPointer task;
  task = steps.submit({.name = "a"}, [&](const Stream&) { steps.scheduler->wait(task); });
  steps.scheduler->step();
  const auto text = message_of<InvalidArgument>([&] { steps.scheduler->result(task); });
  CHECK(contains(text, "waits for itself"));
}

TEST_CASE("scheduler: a task may submit another and wait, unless it holds what that needs") {
  Steps steps;
  const TaskPointer outer = steps.submit(memory_task("outer", 600), [&](const Stream&) {
    steps.scheduler->result(steps.submit(memory_task("inner", 400)));
    steps.scheduler->result(steps.submit(memory_task("large", 500)));
  });
  steps.scheduler->step();
  const auto text = message_of<InvalidArgument>([&] { steps.scheduler->result(outer); });
  CHECK(contains(text, "can begin only after it"));
  CHECK(contains(text, "held by \"outer\""));
  CHECK(steps.order == Names{"outer", "inner"});
  steps.scheduler->drain();
  CHECK(steps.order == Names{"outer", "inner", "large"});
}

TEST_CASE("scheduler: waiting for what nothing can begin is an error, no hang") {
  Steps steps;
  steps.clock->advance(10ms);
  const TaskPointer a = steps.submit({.share = {{0.05, 0.1}}, .name = "a", .model = "m"});
  const TaskPointer b = steps.submit({.share = {{0.05, 0.1}}, .name = "b", .model = "m"});
  const auto text = message_of<InvalidArgument>([&] { steps.scheduler->wait(b); });
  CHECK(contains(text, "its limit is 10 %"));
  CHECK(a->state() == done);
  Scheduler other(steps.device, {.memory = 1, .background = false});
  CHECK_THROWS_AS(other.wait(a), InvalidArgument);
  steps.clock->advance(1s);
  CHECK(steps.scheduler->wait(b));
}

TEST_CASE("scheduler: close cancels what waits") {
  Steps steps;
  const TaskPointer a = steps.submit({.name = "a"});
  steps.scheduler->close();
  CHECK(a->state() == cancelled);
  CHECK(steps.scheduler->is_closed());
  CHECK_THROWS_AS(steps.submit({.name = "b"}), InvalidArgument);
  steps.scheduler->close();
}

TEST_CASE("scheduler: callbacks come once, at the end or at once") {
  Steps steps;
  int calls = 0;
  const TaskPointer a = steps.submit({.name = "a"});
  steps.scheduler->at_end(a, [&] { ++calls; });
  CHECK(calls == 0);
  steps.scheduler->step();
  CHECK(calls == 1);
  steps.scheduler->at_end(a, [&] { ++calls; });
  CHECK(calls == 2);
}

TEST_CASE("scheduler: each failing driver call fails one task with the cause, and no more") {
  for (const char* const call : {"cuEventCreate", "cuEventRecord", "cuEventQuery",
                                 "cuEventElapsedTime", "cuStreamWaitEvent"}) {
    for (int skip = 0; skip < 3; ++skip) {
      CAPTURE(call);
      CAPTURE(skip);
      Steps steps;
      const TaskPointer first = steps.submit(memory_task("first", 500));
      const TaskPointer second =
          steps.submit({.memory = {{500, 500}}, .name = "second", .after = {first}});
      FakeDriver::get().fail(call, CUDA_ERROR_UNKNOWN, 1, skip);
      steps.scheduler->drain();
      int failures = 0;
      for (const TaskPointer& task : {first, second}) {
        CHECK(task->is_over());
        if (task->state() != failed) continue;
        ++failures;
        CHECK_THROWS_AS(steps.scheduler->result(task), DriverError);
      }
      CHECK(failures <= 2);
      CHECK(steps.scheduler->stats().reserved == Amount{});
      FakeDriver::get().fail(call, CUDA_ERROR_UNKNOWN, 1, 1 << 30);
      const TaskPointer after = steps.submit({.name = "after"});
      steps.scheduler->result(after);
    }
  }
}

TEST_CASE("scheduler: a lost device fails all tasks with it") {
  Steps steps;
  std::vector<TaskPointer> tasks;
  for (const char* const name : {"a", "b", "c"})
    tasks.push_back(steps.submit(memory_task(name, 400)));
  FakeDriver::get().fail("cuEventQuery", CUDA_ERROR_ILLEGAL_ADDRESS, 1000);
  steps.scheduler->drain();
  for (const TaskPointer& task : tasks) {
    CHECK(task->state() == failed);
    CHECK_THROWS_AS(steps.scheduler->result(task), DeviceLost);
  }
  CHECK(steps.scheduler->stats().reserved == Amount{});
  CHECK_THROWS_AS(steps.submit({.name = "d"}), DeviceLost);
}

TEST_CASE("scheduler: streams that cannot be made make no scheduler") {
  Device& device = fresh_device();
  for (int skip = 0; skip < 7; ++skip) {
    FakeDriver::get().fail("cuStreamCreateWithPriority", CUDA_ERROR_UNKNOWN, 1, skip);
    CHECK_THROWS_AS(Scheduler(device, {.memory = 1}), DriverError);
    CHECK(FakeDriver::get().live("stream") == 0);
  }
  CHECK_THROWS_AS(Scheduler(device, {.share = 1.5}), InvalidArgument);
  const Scheduler scheduler(device, {.background = false});
  CHECK(FakeDriver::get().live("stream") == 7);
  CHECK(scheduler.stats().capacity.memory > 0);
}

TEST_CASE("scheduler: random submissions, cancellations and failures end in balance") {
  for (unsigned seed = 0; seed < 20; ++seed) {
    CAPTURE(seed);
    std::mt19937 random(seed);
    Steps steps;
    std::vector<TaskPointer> tasks;
    for (int i = 0; i < 200; ++i) {
      switch (random() % 6) {
        case 0:
        case 1: {
          TaskSpec spec = memory_task("t", 1 + random() % 1200, kAllClasses[random() % 3]);
          if (!tasks.empty() && random() % 4 == 0) spec.after = {tasks[random() % tasks.size()]};
          const bool fails = random() % 5 == 0;
          tasks.push_back(steps.submit(std::move(spec), [fails](const Stream&) {
            if (fails) throw Error("planned");
          }));
          break;
        }
        case 2:
          if (!tasks.empty()) steps.scheduler->cancel(tasks[random() % tasks.size()]);
          break;
        case 3:
          Steps::keep_busy(static_cast<int>(random() % 4));
          break;
        default:
          steps.scheduler->step();
      }
      std::uint64_t held = 0;
      for (const TaskPointer& task : tasks) {
        if (task->state() == running) held += task->spec().memory->request;
      }
      CHECK(steps.scheduler->stats().reserved.memory == held);
    }
    steps.scheduler->drain();
    for (const TaskPointer& task : tasks) {
      CHECK(task->is_over());
      states_of(steps, task);
    }
    CHECK(steps.scheduler->stats().reserved == Amount{});
    CHECK(steps.scheduler->live().empty());
  }
}
