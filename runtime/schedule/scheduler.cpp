// The handle of a scheduler.
#include "schedule/scheduler.h"

#include "base/errors.h"
#include "base/format.h"
#include "base/log.h"
#include "core/lifecycle.h"
#include "schedule/scheduler_core.h"
#include "schedule/task_here.h"

#include <thread>
#include <utility>

namespace kernwright::schedule {

Scheduler::Scheduler(Device& device, SchedulerOptions options)
    : core_(std::make_shared<SchedulerCore>(device, std::move(options))) {}

Scheduler::~Scheduler() {
  try {
    core_->shut();
    if (core_->runs_here() || core_->serves_here()) return;  // the threads end it
    core_->drain();
    // The threads are at their last lines; streams and events end here, not there.
    while (may_call_driver() && core_.use_count() > 1 + core_->abandoned_) {
      std::this_thread::yield();
    }
  } catch (const std::exception& error) {
    log_release_failure("Scheduler", error.what());
  }
}

TaskPointer Scheduler::submit(TaskSpec spec, std::shared_ptr<Work> work, const Stream& behind) {
  if (work == nullptr) throw InvalidArgument("a task needs work");
  return core_->submit(std::move(spec), std::move(work), behind);
}

std::unique_ptr<TaskHere> Scheduler::open(TaskSpec spec, const Stream& behind,
                                          const std::function<bool()>& is_interrupted) {
  return core_->open(std::move(spec), behind, is_interrupted);
}

SchedulerCore& Scheduler::reach() const {
  require_driver_allowed();
  return *core_;
}

bool Scheduler::wait(const TaskPointer& task, std::optional<std::chrono::nanoseconds> timeout,
                     WaitBy by) {
  return core_->wait(task, timeout, by);
}

void Scheduler::result(const TaskPointer& task) {
  core_->wait(task, std::nullopt, WaitBy::looking);
  if (const std::exception_ptr failure = core_->failure(task)) std::rethrow_exception(failure);
}

bool Scheduler::cancel(const TaskPointer& task) { return reach().cancel(task); }
bool Scheduler::step() { return core_->step(); }
void Scheduler::reap() { core_->reap(true); }
bool Scheduler::drain(std::optional<std::chrono::nanoseconds> timeout) {
  return core_->drain(timeout);
}

void Scheduler::at_end(const TaskPointer& task, std::function<void()> function) {
  core_->at_end(task, std::move(function));
}

void Scheduler::keep(const std::string& model, std::shared_ptr<ModelContent> content) {
  require_driver_allowed();
  if (model.empty()) throw InvalidArgument("keep(): the model has no name");
  const SchedulerCore::Lock lock(core_->mutex_);
  std::shared_ptr<ModelContent>& known = core_->contents_[model];
  if (content != nullptr && core_->is_closed_) {
    throw InvalidArgument("keep(): the scheduler is closed");
  }
  if (known != nullptr && content != nullptr) {
    throw InvalidArgument(
        format("keep(): the model \"{}\" has arrays already: pass all of them at "
               "once, or release() those first",
               model));
  }
  std::swap(known, content);  // the former one ends with no lock held
  if (known == nullptr) core_->contents_.erase(model);
}

std::string Scheduler::explain(const TaskPointer& task) const { return reach().explain(task); }

std::vector<StateChange> Scheduler::history(const TaskPointer& task) const {
  return reach().history(task);
}

TaskStats Scheduler::stats(const TaskPointer& task) const { return reach().stats(task); }
std::exception_ptr Scheduler::failure(const TaskPointer& task) const {
  return core_->failure(task);
}
SchedulerStats Scheduler::stats() const { return reach().stats(); }
std::vector<TaskPointer> Scheduler::live() const { return reach().live(); }
std::vector<TaskPointer> Scheduler::tasks() const { return reach().tasks(); }
Device& Scheduler::device() const noexcept { return core_->device; }
const Policy& Scheduler::policy() const noexcept { return *core_->policy; }
bool Scheduler::has_threads() const noexcept { return core_->options.background; }
bool Scheduler::close(std::optional<std::chrono::nanoseconds> timeout) {
  core_->shut();
  if (!core_->drain(timeout)) return false;
  if (!may_call_driver()) return true;  // in a forked child nobody gives the locks back
  // These end after the locks below.
  std::vector<Stream> streams;
  std::shared_ptr<void> apart;
  std::unique_ptr<YieldOrders> orders;
  const std::lock_guard reaping(core_->reaping_);  // no thread asks about the ends of tasks
  const SchedulerCore::Lock lock(core_->mutex_);
  if (!core_->live_.empty()) return true;
  for (auto& lane : core_->lanes_) streams.push_back(std::exchange(lane.stream, Stream()));
  apart = std::move(core_->apart_);
  orders = std::move(core_->orders_);
  return true;
}
bool Scheduler::is_closed() const { return core_->is_closed(); }

}  // namespace kernwright::schedule
