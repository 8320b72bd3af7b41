// Tasks of a scheduler with threads: on the simulated device, from several threads at once.
#include "core/device.h"
#include "schedule/scheduler.h"
#include "unit/core/test_device.h"

#include <doctest/doctest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <thread>
#include <vector>

using namespace kernwright;
using namespace kernwright::schedule;
using namespace std::chrono_literals;

TEST_CASE("scheduler threads: four threads submit ten tasks each, all are done once") {
  const testing::Recorded recorded;
  Scheduler scheduler(recorded.device, {.memory = 1000});
  std::atomic<int> runs = 0;
  std::atomic<int> ends = 0;
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      std::vector<TaskPointer> tasks;
      for (int i = 0; i < 10; ++i) {
        tasks.push_back(scheduler.submit({.qos = kAllClasses[(t + i) % 3], .memory = {{300, 300}}},
                                         make_work([&](const Stream& stream) {
                                           ++runs;
                                           stream.record();
                                         })));
        scheduler.at_end(tasks.back(), [&] { ++ends; });
      }
      for (const TaskPointer& task : tasks) scheduler.result(task);
    });
  }
  for (std::thread& thread : threads) thread.join();
  scheduler.drain();
  CHECK(runs == 40);
  CHECK(ends == 40);
  CHECK(scheduler.stats().reserved == Amount{});
  scheduler.close();
}

TEST_CASE("scheduler threads: a task waits for others inside, also when all threads are busy") {
  const testing::Recorded recorded;
  Scheduler scheduler(recorded.device, {.memory = 1000});
  std::atomic<int> inner = 0;
  std::vector<TaskPointer> tasks;
  for (int i = 0; i < 6; ++i) {
    tasks.push_back(
        scheduler.submit({.qos = kAllClasses[i % 3]}, make_work([&](const Stream&) {
                           for (const Qos qos : kAllClasses) {
                             scheduler.result(scheduler.submit(
                                 {.qos = qos}, make_work([&](const Stream&) { ++inner; })));
                           }
                         })));
  }
  for (const TaskPointer& task : tasks) scheduler.result(task);
  CHECK(inner == 18);
}

TEST_CASE("scheduler threads: waits end at their timeout") {
  const testing::Recorded recorded;
  Scheduler scheduler(recorded.device, {.memory = 1000});
  std::atomic<bool> go = false;
  const TaskPointer task =
      scheduler.submit({.qos = Qos::best_effort}, make_work([&](const Stream&) {
                         while (!go) std::this_thread::sleep_for(1ms);
                       }));
  CHECK_FALSE(scheduler.wait(task, 5ms));
  go = true;
  CHECK(scheduler.wait(task));
}

TEST_CASE("scheduler threads: the last handle may go inside a task") {
  const testing::Recorded recorded;
  const std::shared_ptr<Policy> policy = make_default_policy();  // the streams end before it
  auto scheduler = std::make_shared<Scheduler>(recorded.device,
                                               SchedulerOptions{.memory = 1000, .policy = policy});
  scheduler->submit({.qos = Qos::best_effort}, make_work([held = scheduler](const Stream&) mutable {
                      while (held.use_count() > 1) std::this_thread::sleep_for(1ms);
                      held.reset();
                    }));
  scheduler.reset();
  while (policy.use_count() > 1) std::this_thread::sleep_for(1ms);  // all its threads are gone
}

TEST_CASE("scheduler threads: what happens while a foreign policy chooses is not missed") {
  struct Slow final : Policy {
    std::string name() const override { return "slow"; }
    bool is_foreign() const noexcept override { return true; }
    std::optional<std::size_t> choose(std::span<const Candidate> candidates, const Load&) override {
      is_asked = true;
      while (!go) std::this_thread::sleep_for(1ms);
      return candidates.size() < 2 ? std::nullopt : std::optional<std::size_t>(0);
    }
    std::atomic<bool> is_asked = false, go = false;
  };
  const testing::Recorded recorded;
  for (const bool closes : {false, true}) {
    const auto policy = std::make_shared<Slow>();
    Scheduler scheduler(recorded.device, {.memory = 1000, .policy = policy});
    const auto submit = [&](const char* model) {
      return scheduler.submit({.qos = Qos::best_effort, .model = model},
                              make_work([](const Stream&) {}));
    };
    const TaskPointer task = submit("a");
    while (!policy->is_asked) std::this_thread::sleep_for(1ms);
    std::thread closing;
    if (closes) {
      closing = std::thread([&] { scheduler.close(); });
      while (!scheduler.is_closed()) std::this_thread::sleep_for(1ms);
    } else {
      submit("b");
    }
    policy->go = true;
    if (closes) closing.join();
    CHECK(scheduler.wait(task, 20s));
    CHECK(task->state() == (closes ? TaskState::cancelled : TaskState::done));
    scheduler.close();
  }
}

namespace {

/// Stands still under the lock of its scheduler, from hold() on until go().
class HeldClock final : public Clock {
 public:
  Time now() const noexcept override {
    while (is_holding_) {
      is_held_ = true;
      std::this_thread::sleep_for(1ms);
    }
    return Time(0);
  }
  void hold() { is_holding_ = true; }
  void go() { is_holding_ = false; }
  bool is_held() const { return is_held_; }

 private:
  std::atomic<bool> is_holding_ = false;
  mutable std::atomic<bool> is_held_ = false;
};

}  // namespace

TEST_CASE("scheduler threads: a forked child leaves a scheduler whose lock was held at the fork") {
  const testing::Recorded recorded;
  const auto clock = std::make_shared<HeldClock>();
  auto scheduler = std::make_unique<Scheduler>(recorded.device, SchedulerOptions{.clock = clock});
  clock->hold();
  std::thread holder([&] { (void)scheduler->stats(); });
  while (!clock->is_held()) std::this_thread::sleep_for(1ms);
  const pid_t child = ::fork();
  if (child == 0) {
    ::alarm(60);  // a hang ends by a signal
    int refused = 0;
    for (const bool counts : {false, true}) {
      try {
        counts ? (void)scheduler->stats() : (void)scheduler->tasks();
      } catch (const Error&) {
        ++refused;
      }
    }
    const bool is_closed = scheduler->close();
    scheduler.reset();
    ::_exit(is_closed && refused == 2 ? 0 : 1);
  }
  clock->go();
  holder.join();
  int status = 0;
  REQUIRE(::waitpid(child, &status, 0) == child);
  CHECK(status == 0);
  CHECK(scheduler->close());
}
