// Chains of tasks that are longer than a stack is deep.
#include "core/device.h"
#include "schedule/scheduler.h"
#include "unit/core/fake_driver.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <vector>

using namespace kernwright;
using namespace kernwright::schedule;
using testing::fresh_device;

namespace {

constexpr int kLinks = 60'000;

/// Tasks of best effort, each behind the one before.
struct Chain {
  explicit Chain(int links = kLinks) {
    for (int i = 0; i < links; ++i) {
      TaskSpec spec{.qos = Qos::best_effort};
      if (!tasks.empty()) spec.after = {tasks.back()};
      tasks.push_back(
          scheduler.submit(std::move(spec), make_work([this](const Stream&) { ++runs; })));
    }
  }
  auto count(TaskState state) const {
    return std::count_if(tasks.begin(), tasks.end(),
                         [&](const TaskPointer& task) { return task->state() == state; });
  }

  Scheduler scheduler{fresh_device(), {.memory = 1000, .background = false}};
  std::vector<TaskPointer> tasks;
  int runs = 0;
};

}  // namespace

TEST_CASE("long chain: all links fail with a cancelled one") {
  Chain chain;
  int ends = 0;
  chain.scheduler.at_end(chain.tasks.back(), [&] { ++ends; });
  CHECK(chain.scheduler.cancel(chain.tasks.front()));
  CHECK(chain.count(TaskState::cancelled) == 1);
  CHECK(chain.count(TaskState::failed) == kLinks - 1);
  CHECK(ends == 1);
  CHECK(chain.scheduler.stats().classes[ordinal(Qos::best_effort)].failed == kLinks - 1);
  CHECK_THROWS_AS(chain.scheduler.result(chain.tasks.back()), TaskCancelled);
  CHECK(chain.scheduler.live().empty());
}

TEST_CASE("long chain: close() ends all links") {
  Chain chain;
  chain.scheduler.close();
  CHECK(chain.count(TaskState::cancelled) == 1);
  CHECK(chain.count(TaskState::failed) == kLinks - 1);
  CHECK(chain.runs == 0);
}

TEST_CASE("long chain: a task at its end lends its class to all links") {
  Chain chain;
  const TaskPointer urgent =
      chain.scheduler.submit({.after = {chain.tasks.back()}}, make_work([](const Stream&) {}));
  CHECK(std::all_of(chain.tasks.begin(), chain.tasks.end(),
                    [](const TaskPointer& task) { return task->qos() == Qos::guaranteed; }));
  chain.scheduler.result(urgent);
  CHECK(chain.runs == kLinks);
}

TEST_CASE("long chain: the work of a task may wait for its end") {
  Chain chain(20'000);
  const TaskPointer outer = chain.scheduler.submit({.priority = 1}, make_work([&](const Stream&) {
                                                     chain.scheduler.result(chain.tasks.back());
                                                   }));
  chain.scheduler.result(outer);
  CHECK(chain.runs == 20'000);
}
