// Schedulers whose device is lost: all tasks end with the cause, and threads go on.
#include "base/errors.h"
#include "base/log.h"
#include "core/device.h"
#include "fault/fault_fixture.h"
#include "schedule/scheduler.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <memory>
#include <thread>
#include <vector>

using namespace kernwright;
using namespace kernwright::schedule;
using namespace kernwright::testing;

namespace {

FaultPlan loss(std::uint64_t call) {
  FaultPlan plan;
  plan.call = call;
  plan.result = CUDA_ERROR_ILLEGAL_ADDRESS;
  plan.sticky = true;
  return plan;
}

/// Launches a kernel without effect on the stream of the task.
std::unique_ptr<Work> launches(const Kernel& kernel, int count) {
  return make_work([kernel, count](const Stream& stream) {
    float a = 0;
    int n = 0;
    CUdeviceptr none = 0;
    void* arguments[] = {&a, &none, &none, &n};
    for (int i = 0; i < count; ++i) {
      kernel.launch({.grid = {1}, .block = {32}, .stream = stream}, arguments);
    }
  });
}

void check_ends(Scheduler& scheduler, const std::vector<TaskPointer>& tasks, bool is_lost) {
  for (const TaskPointer& task : tasks) {
    CHECK(task->is_over());
    if (task->state() == TaskState::done) continue;
    CHECK(is_lost);
    CHECK(task->state() == TaskState::failed);
    CHECK_THROWS_AS(scheduler.result(task), DeviceLost);
  }
  CHECK(scheduler.stats().reserved == Amount{});
  CHECK(scheduler.live().empty());
}

struct QuietLoss {
  QuietLoss() {
    set_log_sink([](LogLevel, std::string_view) {});
  }
  ~QuietLoss() {
    faults().disarm();
    set_log_sink({});
  }
};

}  // namespace

TEST_CASE(
    "scheduler faults: whichever call tells that the device is lost, all tasks fail with it") {
  const QuietLoss quiet;
  prepare_runtime();
  int losses = 0;
  std::uint64_t fired = 1;
  for (std::uint64_t call = 1; fired != 0; ++call) {
    CAPTURE(call);
    REQUIRE(call < 1000);
    Device& device = new_registry(Seen::as_gpu).by_index(0);
    const Kernel kernel = load_saxpy(device);
    Scheduler scheduler(device, {.memory = 100'000, .background = false});
    std::vector<TaskPointer> tasks;
    for (const Qos qos : kAllClasses) {
      tasks.push_back(
          scheduler.submit({.qos = qos, .memory = {{40'000, 40'000}}}, launches(kernel, 2)));
      tasks.push_back(scheduler.submit({.qos = qos, .share = {{0.3, 1}}, .after = {tasks.back()}},
                                       launches(kernel, 1)));
    }
    faults().arm(loss(call));
    scheduler.drain();
    fired = faults().fired();
    const bool is_lost = device.lost();
    check_ends(scheduler, tasks, is_lost);
    losses += std::any_of(tasks.begin(), tasks.end(), [](const TaskPointer& task) {
      return task->state() == TaskState::failed;
    });
    if (is_lost) CHECK_THROWS_AS(scheduler.submit({}, launches(kernel, 1)), DeviceLost);
    faults().disarm();
  }
  CHECK(losses > 100);  // the others came when all tasks were done
}

TEST_CASE("scheduler faults: threads of a scheduler outlive the loss of the device") {
  const QuietLoss quiet;
  prepare_runtime();
  for (std::uint64_t call = 1; call < 120; call += 7) {
    CAPTURE(call);
    Device& device = new_registry(Seen::as_gpu).by_index(0);
    const Kernel kernel = load_saxpy(device);
    Scheduler scheduler(device, {.memory = 100'000});
    faults().arm(loss(call));
    std::vector<std::vector<TaskPointer>> tasks(3);
    std::vector<std::thread> threads;
    for (std::size_t t = 0; t < tasks.size(); ++t) {
      threads.emplace_back([&, t] {
        try {
          for (int i = 0; i < 10; ++i) {
            tasks[t].push_back(scheduler.submit(
                {.qos = kAllClasses[t], .memory = {{30'000, 30'000}}}, launches(kernel, 2)));
          }
        } catch (const DeviceLost&) {  // it takes no more tasks
        }
      });
    }
    for (std::thread& thread : threads) thread.join();
    scheduler.drain();
    const bool is_lost = device.lost();
    faults().disarm();
    for (const auto& each : tasks) check_ends(scheduler, each, is_lost);
  }
}
