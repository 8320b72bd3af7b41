// Advances a loop until it is closed, and queues its events for another thread.
#include "engine/runner.h"

#include "core/device.h"

#include <algorithm>
#include <exception>
#include <iterator>
#include <utility>

namespace kernwright::engine {

std::string Runner::run(const std::function<void()>& between) {
  /// take() must not wait for events of a thread that has ended.
  struct End {
    Runner& runner;
    ~End() {
      const std::lock_guard lock(runner.mutex_);
      runner.ended_ = true;
      runner.changed_.notify_all();
    }
  };
  const End end{*this};
  std::string cause;
  bool goes_on = true;
  while (goes_on && !closed_.load()) {
    loop_.inbox().wait_for_work();
    if (interrupted_.exchange(false)) between();
    if (loop_.inbox().has_work()) goes_on = advance(cause);
  }
  std::vector<TokenEvent> events;
  if (goes_on)
    loop_.abandon(Finish::cancelled, {}, events);
  else
    loop_.abandon(Finish::failed, cause, events);
  queue(events);
  return cause;
}

/// One step. False, with the cause, where no other can follow it.
bool Runner::advance(std::string& cause) {
  std::vector<TokenEvent> events;
  bool goes_on = true;
  try {
    loop_.advance(events);
  } catch (const std::exception& error) {
    const std::string message = error.what();
    // Requests stay in the loop where no step could be recorded: the next one would fail, too.
    loop_.abandon(Finish::failed, message, events);
    goes_on = !loop_.stream().device().lost();
    if (!goes_on) cause = message;
  }
  queue(events);
  return goes_on;
}

void Runner::queue(std::vector<TokenEvent>& events) {
  if (events.empty()) return;
  const std::lock_guard lock(mutex_);
  std::ranges::move(events, std::back_inserter(events_));
  changed_.notify_all();
}

void Runner::interrupt() {
  interrupted_ = true;
  loop_.inbox().wake();
}

void Runner::close() {
  closed_ = true;
  loop_.inbox().wake();
}

bool Runner::take(std::vector<TokenEvent>& events, std::chrono::nanoseconds limit) {
  std::unique_lock lock(mutex_);
  changed_.wait_for(lock, limit, [&] { return ended_ || !events_.empty(); });
  std::ranges::move(events_, std::back_inserter(events));
  events_.clear();
  return !ended_ || !events.empty();
}

}  // namespace kernwright::engine
