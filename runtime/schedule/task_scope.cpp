// Launches of a task.
#include "schedule/task_scope.h"

#include "base/format.h"
#include "base/log.h"
#include "core/device.h"
#include "core/graph/capture.h"

#include <algorithm>

namespace kernwright::schedule {

std::vector<const Task*>& running_here() noexcept {
  thread_local std::vector<const Task*> tasks;
  return tasks;
}

TaskScope::TaskScope(SchedulerCore& core, const TaskPointer& task, const Stream& stream)
    : core_(core), pointer_(task), task_(*task), stream_(stream), scope_(this) {
  running_here().push_back(task.get());
}

TaskScope::~TaskScope() {
  drop_entry();
  running_here().pop_back();
}

/// Of a launch that the driver did not take.
void TaskScope::drop_entry() noexcept {
  if (number_) core_.forget(*number_);
  number_.reset();
  begin_.reset();
}

void TaskScope::before(const void* work, std::uint64_t blocks, const Stream& stream) {
  if (task_.cancelled_.load(std::memory_order_relaxed)) [[unlikely]] {
    throw TaskCancelled(format("{} was cancelled while it ran", task_.label()));
  }
  drop_entry();
  const bool is_best_effort = task_.qos() == Qos::best_effort;
  const bool has_share = task_.tenant_->request().has_value();
  if (!is_best_effort && !has_share) return;
  if (any_capture() && capture_of(core_.device, stream.handle()) != nullptr) return;
  task_.is_paced_ = true;
  number_ = core_.enter({pointer_, task_.tenant_, is_best_effort, has_share, {work, blocks}});
  begin_ = core_.take_event();
  begin_->record(stream);
}

void TaskScope::after(const Stream& stream) {
  if (number_) {
    Event end = core_.take_event();
    end.record(stream);
    core_.issued(*number_, std::move(*begin_), std::move(end));
    number_.reset();
    begin_.reset();
  }
  if (stream.handle() == stream_.handle()) [[likely]] {
    task_.launches_.fetch_add(1, std::memory_order_relaxed);
    return;
  }
  if (any_capture() && capture_of(core_.device, stream.handle()) != nullptr) return;
  task_.launches_.fetch_add(1, std::memory_order_relaxed);
  const auto is_same = [&](const Stream& other) { return other.handle() == stream.handle(); };
  if (std::any_of(others_.begin(), others_.end(), is_same)) return;
  is_on_legacy_ = is_on_legacy_ || stream.handle() == nullptr;
  others_.push_back(stream ? stream : Stream::legacy(core_.device));
}

void TaskScope::join() {
  if (is_on_legacy_) {
    log(LogLevel::warning,
        "{} launches on the legacy stream of {}: it waits for the work of other streams, and they "
        "for it. Launch on the current stream, or on one of your own",
        task_.label(), core_.device.identify());
  }
  for (const Stream& other : others_) stream_.wait(other.record());
  others_.clear();
}

}  // namespace kernwright::schedule
