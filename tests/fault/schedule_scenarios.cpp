// Uses of the schedule room: tasks that run, wait, fail, are cancelled, are evicted; launches as
// tasks; a partition. A fault may end a run anywhere: the rules of check() hold all the same.
#include "array/array.h"
#include "base/errors.h"
#include "core/device.h"
#include "core/graph/graph.h"
#include "fault/fault_fixture.h"
#include "memory/evictable_buffer.h"
#include "memory/memory_resource.h"
#include "schedule/model_content.h"
#include "schedule/scheduler.h"
#include "schedule/task_here.h"

#include <functional>
#include <memory>
#include <vector>

namespace kernwright::testing {
namespace {

using namespace schedule;

/// A kernel that adds 2 to 3 numbers, and its arguments.
struct Sum {
  explicit Sum(Device& device)
      : kernel(load_saxpy(device)),
        x(Array::from_host(device, std::vector<float>(3, 1).data(), {3}, ScalarType::float32)),
        y(Array::from_host(device, std::vector<float>(3, 0).data(), {3}, ScalarType::float32)) {}
  void add(const Stream& stream) {
    kernel.launch({.grid = {1}, .block = {32}, .stream = stream}, arguments);
  }
  float read() const {
    std::vector<float> values(3);
    y.to_host(values.data());
    return values[2];
  }
  Kernel kernel;
  Array x, y;
  CUdeviceptr in = x.address(), out = y.address();
  float a = 2;
  int n = 3;
  void* arguments[4] = {&a, &in, &out, &n};
};

/// A scheduler without threads, and all tasks that it took.
struct JudgedScheduler {
  explicit JudgedScheduler(Device& device)
      : scheduler(std::make_shared<Scheduler>(
            device, SchedulerOptions{.memory = 1 << 20, .background = false})),
        sum(device) {}
  TaskPointer submit(TaskSpec spec, const Stream& behind = {}) {
    tasks.push_back(scheduler->submit(
        std::move(spec), make_work([this](const Stream& on) { sum.add(on); }), behind));
    return tasks.back();
  }
  /// Every task ends, a failed one with its cause, and gives all back.
  void check() {
    scheduler->drain();
    require(scheduler->live().empty(), "all tasks are over");
    require(scheduler->stats().reserved == Amount{}, "all is given back");
    const SchedulerStats stats = scheduler->stats();
    std::uint64_t taken = 0, over = 0;
    for (const ClassStats& each : stats.classes) {
      taken += each.submitted;
      over += each.done + each.failed + each.cancelled + each.refused;
      require(each.running == 0 && each.waiting == 0, "nothing runs or waits");
    }
    require(taken == over, "each task ended once");
    for (const TaskPointer& task : tasks) {
      const bool has_cause = scheduler->failure(task) != nullptr;
      require(has_cause == (task->state() != TaskState::done), "a task that fails has a cause");
    }
  }

  std::shared_ptr<Scheduler> scheduler;
  Sum sum;
  std::vector<TaskPointer> tasks;
  TaskPointer cancelled_inside;  ///< its work may run in check(), after a fault has ended the use
};

/// Checks the rules after the use, also where a fault ended it.
void judge(Device& device, const std::function<void(JudgedScheduler&)>& use) {
  JudgedScheduler run(device);
  std::exception_ptr fault;
  try {
    use(run);
  } catch (...) {
    fault = std::current_exception();
  }
  run.check();
  if (fault != nullptr) std::rethrow_exception(fault);
}

void use_tasks(JudgedScheduler& run) {
  Device& device = run.scheduler->device();
  const Stream stream = Stream::create(device);
  run.sum.add(stream);  // the first task waits for it on the device
  const TaskPointer first =
      run.submit({.qos = Qos::best_effort, .memory = {{1 << 16, 1 << 16}}}, stream);
  const TaskPointer second = run.submit({.share = {{0.5, 1}}, .after = {first}});
  const TaskPointer large = run.submit({.memory = {{1 << 20, 1 << 20}}});
  run.scheduler->drain();
  for (const TaskPointer& task : {first, second, large}) run.scheduler->result(task);
  require(run.sum.read() == 8, "four launches");
  {
    const auto here = run.scheduler->open({.qos = Qos::best_effort}, stream);
    run.tasks.push_back(here->task());
    run.sum.add(here->stream());
    run.sum.add(stream);  // on another stream: joined
    here->end();
    run.scheduler->result(run.tasks.back());
  }
  require(run.sum.read() == 12, "a task of this thread");
}

/// One is cancelled in the queue, one in its work, and one has a successor.
void use_cancellation(JudgedScheduler& run) {
  const TaskPointer waiting = run.submit({.memory = {{1 << 10, 1 << 10}}});
  const TaskPointer behind = run.submit({.after = {waiting}});
  require(run.scheduler->cancel(waiting), "a waiting task is cancelled");
  TaskPointer& inside = run.cancelled_inside;
  inside = run.scheduler->submit({.share = {{0.25, 0.5}}}, make_work([&run](const Stream& on) {
                                   run.sum.add(on);
                                   run.scheduler->cancel(run.cancelled_inside);
                                   run.sum.add(on);
                                 }));
  run.tasks.push_back(inside);
  run.scheduler->drain();
  require(waiting->state() == TaskState::cancelled && behind->state() == TaskState::failed,
          "a successor fails with the cancelled one");
  // A fault before its second launch fails it.
  if (inside->state() == TaskState::failed) run.scheduler->result(inside);
  require(inside->state() == TaskState::cancelled && run.sum.read() == 2, "at its next launch");
}

/// Content that leaves the device between the tasks of its model.
class Weights final : public ModelContent {
 public:
  explicit Weights(Device& device)
      : buffer_(default_resource(device), 4096, {}, LaunchSite::here(),
                std::make_shared<EvictionGroup>(EvictionClass::best_effort, 0, true)) {}
  bool evict() { return buffer_.evict(); }
  bool is_resident() const { return buffer_.is_resident(); }

 protected:
  void bring() override { pin_ = buffer_.pin(); }
  void let_go() noexcept override { pin_ = {}; }

 private:
  EvictableBuffer buffer_;
  EvictableBuffer::Pin pin_;
};

void use_evicted_models(JudgedScheduler& run) {
  const auto weights = std::make_shared<Weights>(run.scheduler->device());
  run.scheduler->keep("m", weights);
  for (int i = 0; i < 2; ++i) {
    require(weights->evict() && !weights->is_resident(), "idle content leaves");
    run.scheduler->result(run.submit({.model = "m"}));
    require(weights->is_resident(), "and is back for the task");
  }
  run.scheduler->keep("m", nullptr);
}

void use_launches_as_tasks(JudgedScheduler& run) {
  const Stream stream = Stream::create(run.scheduler->device());
  LaunchTasks hook(run.scheduler, {.qos = Qos::guaranteed});
  {
    const LaunchHookScope scope(&hook);
    run.sum.add(stream);
    run.sum.add({});
  }
  run.scheduler->drain();
  require(run.sum.read() == 4, "two launches");
  for (const TaskPointer& task : run.scheduler->tasks()) run.scheduler->result(task);
  require(run.scheduler->stats().classes[0].done == 2, "two tasks");
}

void use_partition(JudgedScheduler& run) {
  {
    const auto part = run.scheduler->partition(8, {.memory = 1 << 10});
    part->result(part->submit({}, make_work([&](const Stream& on) { run.sum.add(on); })));
    require(run.sum.read() == 2, "a launch in a partition");
  }
  require(run.scheduler->stats().reserved == Amount{}, "the partition is gone");
}

}  // namespace

std::vector<Scenario> schedule_scenarios() {
  // Ends that cannot be marked or asked for are waited for; a stream is asked whether it has work
  // only to leave out an event; times that are not known are left out.
  const std::set<std::string> absorbed = {
      "cuEventCreate",      "cuEventRecord", "cuEventQuery",      "cuEventElapsedTime",
      "cuEventSynchronize", "cuStreamQuery", "cuStreamWaitEvent", "cuStreamSynchronize"};
  const auto scenario = [&](const char* name, void (*use)(JudgedScheduler&)) {
    return on_device(
        name, Seen::as_gpu, [use](Device& device) { judge(device, use); }, absorbed);
  };
  return {scenario("tasks", use_tasks), scenario("cancelled tasks", use_cancellation),
          scenario("tasks of an evicted model", use_evicted_models),
          scenario("launches as tasks", use_launches_as_tasks),
          scenario("a scheduler of a partition", use_partition)};
}

}  // namespace kernwright::testing
