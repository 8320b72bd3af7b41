// Scopes of a task in a thread.
#include "schedule/task_here.h"

#include "base/errors.h"
#include "base/format.h"
#include "base/log.h"
#include "core/device.h"
#include "core/graph/capture.h"
#include "core/graph/graph.h"
#include "core/kernel.h"
#include "core/launch/launch_pause.h"
#include "memory/memory_resource.h"
#include "schedule/scheduler_core.h"

#include <exception>
#include <utility>
#include <vector>

namespace kernwright::schedule {
namespace {

constexpr TransferClass kCopies[kClasses] = {TransferClass::urgent, TransferClass::normal,
                                             TransferClass::best_effort};
constexpr EvictionClass kGroups[kClasses] = {EvictionClass::guaranteed, EvictionClass::burstable,
                                             EvictionClass::best_effort};

}  // namespace

TaskHere::TaskHere(std::shared_ptr<SchedulerCore> core, const TaskPointer& task) noexcept
    : core_(std::move(core)), task_(task), stream_(core_->lanes_[task->lane_].stream) {
  try {
    begin();
  } catch (...) {
    failure_ = std::current_exception();
  }
}

/// The group of the task's evictable arrays: that of the model, or one for the task alone; tasks
/// that ask for no memory share the group of their class.
std::shared_ptr<EvictionGroup> TaskHere::find_group() const {
  const bool has_model = !task_->spec_.model.empty();
  const std::uint64_t request = task_->spec_.request().memory;
  const std::size_t kind = ordinal(task_->spec_.qos);
  const auto make = [&] {
    return std::make_shared<EvictionGroup>(kGroups[kind], request, has_model);
  };
  if (!has_model && request > 0) return make();
  std::shared_ptr<EvictionGroup>& shared =
      has_model ? task_->tenant_->evictable : core_->groups_[kind];
  if (shared == nullptr) shared = make();
  return shared;
}

/// The resource of the task's arrays; null for that of the device.
std::shared_ptr<TaskMemory> TaskHere::make_memory() {
  if (!task_->spec_.model.empty()) return task_->tenant_->memory;
  if (!task_->spec_.memory) return nullptr;
  auto made = std::make_shared<TaskMemory>(default_resource(core_->device),
                                           task_->spec_.memory->limit, task_->label());
  const SchedulerCore::Lock lock(core_->mutex_);
  task_->memory_ = made;
  return made;
}

void TaskHere::begin() {
  std::vector<Event> before;
  std::shared_ptr<EvictionGroup> group;
  std::shared_ptr<ModelContent> content;
  bool has_begin = false;
  std::optional<Event> before_it;
  {
    const SchedulerCore::Lock lock(core_->mutex_);
    core_->note(*task_, TaskState::running, {}, core_->clock->now());
    // Behind a task of the same stream its time begins with the end of that one. A device that
    // keeps up has probably seen that: it is not asked.
    const auto& lane = core_->lanes_[task_->lane_];
    has_begin = lane.issued.empty() || lane.keeps_up || lane.issued.back()->is_paced_;
    if (!has_begin) before_it = lane.issued.back()->end_;
    if (task_->ready_) before.push_back(*task_->ready_);
    for (const TaskPointer& other : task_->after_) {
      if (!other->is_over() && other->end_ && other->lane_ != task_->lane_) {
        before.push_back(*other->end_);
      }
    }
    group = find_group();
    const auto kept = core_->contents_.find(task_->spec_.model);
    if (kept != core_->contents_.end()) content = kept->second;
  }
  try {
    core_->send_orders();
  } catch (const std::exception& error) {  // launches under way go on; a lost device is told
    log(LogLevel::warning, "an order to yield did not reach a launch: {}", error.what());
  }
  if (content != nullptr) {
    core_->reap();  // content of models whose tasks are done may leave for it
    content->enter();
    const SchedulerCore::Lock lock(core_->mutex_);
    task_->content_ = std::move(content);
  }
  for (const Event& event : before) stream_.wait(event);
  if (before_it) has_begin = before_it->done();  // nobody has seen its end yet
  if (has_begin) {
    task_->begin_ = core_->take_event();
    task_->begin_->record(stream_);
  }
  const std::shared_ptr<TaskMemory> memory = make_memory();
  memory_.emplace(memory);
  evictable_.emplace(std::move(group));
  copies_.emplace(kCopies[ordinal(task_->qos())]);
  launches_.emplace(*core_, task_, stream_, memory.get());
}

TaskHere::~TaskHere() {
  try {
    end();
  } catch (const std::exception& error) {
    log_release_failure(task_->label(), error.what());
  }
}

void TaskHere::end(std::exception_ptr failure) {
  if (std::exchange(is_over_, true)) return;
  if (failure == nullptr) failure = failure_;
  try {
    if (launches_) launches_->join();
  } catch (...) {
    if (failure == nullptr) failure = std::current_exception();
  }
  launches_.reset();
  copies_.reset();
  evictable_.reset();
  memory_.reset();
  core_->issue(task_, std::move(failure));
}

bool TaskHere::is_innermost() const noexcept {
  const auto& tasks = running_here();
  return !tasks.empty() && tasks.back() == task_.get();
}

void TaskHere::abandon(std::unique_ptr<TaskHere> here) noexcept {
  TaskHere& self = *here.release();
  self.is_over_ = true;
  ++self.core_->abandoned_;
  try {
    if (self.launches_) self.launches_->join();
  } catch (const std::exception& error) {
    log_release_failure(self.task_->label(), error.what());
  }
  try {
    self.core_->issue(
        self.task_, std::make_exception_ptr(
                        Error(format("the block of {} did not end in its place: on its own thread, "
                                     "and behind the blocks of tasks inside it",
                                     self.task_->label()))));
  } catch (const std::exception& error) {
    log_release_failure(self.task_->label(), error.what());
  }
}

template <typename Launch>
void LaunchTasks::run(const Stream& stream, const Launch& launch) {
  Device& device = scheduler_->device();
  const bool is_captured = any_capture() && stream && find_capture(stream) != nullptr;
  if (scheduler_->is_closed() || is_captured) return launch();
  std::unique_ptr<TaskHere> here;
  {
    const LaunchPause paused;
    here = scheduler_->open(spec_, stream ? stream : Stream::legacy(device));
  }
  std::exception_ptr failure;
  try {
    launch();
  } catch (...) {
    failure = std::current_exception();
  }
  {
    // The end may call functions that take the interpreter's lock, while another thread with that
    // lock waits for one that the caller of the launch holds.
    const LaunchPause paused;
    here->end(failure);
    here.reset();
  }
  if (failure != nullptr) std::rethrow_exception(failure);
}

void LaunchTasks::launch(const Kernel& kernel, const LaunchConfig& config,
                         std::span<void* const> arguments, const LaunchSite& site) {
  run(config.stream, [&] { kernel.launch(config, arguments, site); });
}

void LaunchTasks::launch_graph(Graph& graph, const Stream& stream, const LaunchSite& site) {
  run(stream, [&] { graph.launch(stream, site); });
}

}  // namespace kernwright::schedule
