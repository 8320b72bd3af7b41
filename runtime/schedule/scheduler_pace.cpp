// Launches of paced tasks: when they go, and how long they kept the device busy.
#include "base/format.h"
#include "core/device.h"
#include "core/launch/launch_pause.h"
#include "schedule/scheduler_core.h"

#include <algorithm>
#include <thread>
#include <utility>

namespace kernwright::schedule {
namespace {

/// Often at first: most waits end within a few kernels.
void pause(unsigned round) {
  if (round < 50) {
    std::this_thread::yield();
  } else {
    std::this_thread::sleep_for(std::chrono::microseconds(5));
  }
}

}  // namespace

Event SchedulerCore::take_event() {
  {
    const Lock lock(mutex_);
    if (!events_.empty()) {
      Event event = std::move(events_.back());
      events_.pop_back();
      return event;
    }
  }
  return Event(device);
}

Pacer::Number SchedulerCore::enter(const PacedLaunch& launch) {
  const auto try_enter = [&]() -> std::optional<Pacer::Number> {
    const Lock lock(mutex_);
    // A task that runs another one in its own work must not keep that back.
    const bool is_inner = running_here().size() > 1;
    if (launch.is_best_effort && !is_inner && policy->holds(Qos::best_effort, load())) {
      return std::nullopt;
    }
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
  launch.task->preemptions_.fetch_add(1, std::memory_order_relaxed);
  const LaunchPause paused;
  for (unsigned round = 0;; ++round) {
    if (launch.task->cancelled_.load(std::memory_order_relaxed)) {
      const Lock lock(mutex_);
      pacer_.remove_waiting(launch);
      throw TaskCancelled(format("{} was cancelled while it ran", launch.task->label()));
    }
    if (!options.background) reap();  // no thread sees the ends of tasks meanwhile
    if (!measure()) pause(round);
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
  std::erase_if(pending, [](const Pacer::Pending& each) { return !each.end.done(); });
  if (pending.empty()) return false;
  std::vector<std::pair<float, const Pacer::Pending*>> ends;
  const Event reference = last_launch_end_ ? *last_launch_end_ : pending.front().begin;
  for (const Pacer::Pending& each : pending)
    ends.emplace_back(each.end.elapsed_ms(reference), &each);
  std::sort(ends.begin(), ends.end());
  float before = 0;  // ms after the reference
  std::vector<Time> busy;
  for (const auto& [end, each] : ends) {
    const float whole = each->end.elapsed_ms(each->begin);
    busy.push_back(from_seconds(std::max(std::min(whole, end - before), 0.0F) / 1e3));
    before = std::max(before, end);
  }
  const Lock lock(mutex_);
  if (ends.back().first > 0 || !last_launch_end_) {
    if (last_launch_end_) events_.push_back(*last_launch_end_);
    last_launch_end_ = ends.back().second->end;
  }
  for (std::size_t i = 0; i < ends.size(); ++i) {
    const Pacer::Pending& each = *ends[i].second;
    if (const TaskPointer task = pacer_.done(each.number, busy[i], clock->now())) {
      task->device_ += busy[i];
    }
    events_.push_back(each.begin);
    if (each.end.handle() != last_launch_end_->handle()) events_.push_back(each.end);
  }
  return true;
}

}  // namespace kernwright::schedule
