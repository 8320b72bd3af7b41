// Launches of paced tasks: when they go, and how long they kept the device busy.
#include "base/format.h"
#include "core/device.h"
#include "core/launch/launch_pause.h"
#include "schedule/precise_sleep.h"
#include "schedule/scheduler_core.h"

#include <algorithm>
#include <utility>

namespace kernwright::schedule {

Event SchedulerCore::take_event(bool timing) {
  {
    const Lock lock(mutex_);
    std::vector<Event>& events = timing ? events_ : marks_;
    if (!events.empty()) {
      Event event = std::move(events.back());
      events.pop_back();
      return event;
    }
  }
  return Event(device, timing);
}

/// A launch that waits: ends of tasks are seen at once meanwhile.
class SchedulerCore::EagerScope {
 public:
  EagerScope(SchedulerCore& core, Task& task) : core_(core), task_(task) {
    const Lock lock(core_.mutex_);
    task_.waits_to_launch_ = true;
    ++core_.eager_;
    core_.wake_watcher();
  }
  ~EagerScope() {
    const Lock lock(core_.mutex_);
    --core_.eager_;
    task_.waits_to_launch_ = false;
  }
  EagerScope(const EagerScope&) = delete;
  EagerScope& operator=(const EagerScope&) = delete;

 private:
  SchedulerCore& core_;
  Task& task_;
};

Pacer::Number SchedulerCore::enter(PacedLaunch launch) {
  const auto try_enter = [&]() -> std::optional<Pacer::Number> {
    const Lock lock(mutex_);
    // A more urgent task may have begun to wait for this one, and have lent its class.
    launch.is_best_effort = launch.task->qos() == Qos::best_effort;
    // A task that runs another one in its own work must not keep that back.
    const bool is_inner = running_here().size() > 1;
    if (launch.is_best_effort && !is_inner && is_held(Qos::best_effort)) return std::nullopt;
    const auto number = pacer_.try_enter(launch, clock->now());
    if (number) pacer_.remove_waiting(launch);
    return number;
  };
  {
    const Lock lock(mutex_);
    pacer_.add_waiting(launch, clock->now());
  }
  measure();
  if (const auto number = try_enter()) return *number;
  // The launch in front of this rest has counted already.
  if (!launch.is_rest) launch.task->preemptions_.fetch_add(1, std::memory_order_relaxed);
  const LaunchPause paused;
  const EagerScope eager(*this, *launch.task);
  const PreciseSleep precise;
  for (unsigned round = 0;; ++round) {
    if (launch.task->cancelled_.load(std::memory_order_relaxed)) {
      const Lock lock(mutex_);
      pacer_.remove_waiting(launch);
      throw TaskCancelled(format("{} was cancelled while it ran", launch.task->label()));
    }
    if (!options.background) reap();  // no thread sees the ends of tasks meanwhile
    if (!measure()) precise.pause(round);
    if (const auto number = try_enter()) return *number;
  }
}

void SchedulerCore::issued(Pacer::Number number, Event begin, Event end) {
  const Lock lock(mutex_);
  pacer_.issued(number, std::move(begin), std::move(end));
}

void SchedulerCore::forget(Pacer::Number number) noexcept {
  const Lock lock(mutex_);
  pacer_.forget(number, clock->now());
}

void SchedulerState::send_orders() {
  if (orders_ == nullptr) return;
  orders_->send([this] {
    const Lock lock(mutex_);
    return pacer_.take_orders();
  });
}

/// Launches may overlap: each counts from its beginning, or from the end of the one before.
bool SchedulerCore::measure(bool waits) {
  std::unique_lock measuring(measuring_, std::defer_lock);
  if (waits) {
    measuring.lock();
  } else if (!measuring.try_lock()) {
    return false;
  }
  std::vector<Pacer::Pending> pending;
  {
    const Lock lock(mutex_);
    if (pacer_.is_empty()) return false;
    pending = pacer_.pending();
  }
  struct End {
    float end, whole;  ///< ms after the reference; since its beginning
    const Pacer::Pending* launch;
    bool operator<(const End& other) const noexcept { return end < other.end; }
  };
  std::vector<End> ends;
  std::optional<Event> reference = last_launch_end_;
  for (const Pacer::Pending& each : pending) {
    try {
      if (!each.end.done()) continue;
      if (!reference) reference = each.begin;
      ends.push_back({each.end.elapsed_ms(*reference), each.end.elapsed_ms(each.begin), &each});
    } catch (const std::exception&) {
      forget(each.number);  // the end of its task tells what is wrong
    }
  }
  if (ends.empty()) return false;
  std::sort(ends.begin(), ends.end());
  float before = 0;
  const Lock lock(mutex_);
  if (ends.back().end > 0 || !last_launch_end_) {
    keep_event(last_launch_end_);
    last_launch_end_ = ends.back().launch->end;
  }
  for (const auto& [end, whole, launch] : ends) {
    const Time busy = from_seconds(std::max(std::min(whole, end - before), 0.0F) / 1e3);
    before = std::max(before, end);
    if (const TaskPointer task = pacer_.done(launch->number, busy, clock->now())) {
      task->device_ += busy;
    }
    std::optional<Event> begin(launch->begin), ending(launch->end);
    keep_event(begin);
    if (ending->handle() != last_launch_end_->handle()) keep_event(ending);
  }
  return true;
}

}  // namespace kernwright::schedule
