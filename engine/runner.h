// A loop on a thread of its own: it runs while there is work, and sleeps while there is none.
#pragma once

#include "engine/loop.h"

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <functional>
#include <mutex>
#include <string>
#include <vector>

namespace kernwright::engine {

/// Advances a loop in run(), and queues its events for take(). Thread-safe.
class Runner {
 public:
  /// The loop outlives the runner. Nobody else advances it.
  explicit Runner(Loop& loop) : loop_(loop) {}

  /// Runs until close(), or until the device is lost. All requests left end then, with events.
  /// After any other error the requests in the loop end as failed, and it goes on. `between` is
  /// called between two steps after each interrupt(), and throws nothing. For one thread, once.
  /// The message of what ended it; empty after close().
  std::string run(const std::function<void()>& between);
  /// Has run() call `between` before the next step, also while there is no work. Calls of
  /// interrupt() that come before that are one.
  void interrupt();
  /// Ends run() after the step in the making.
  void close();
  /// Appends all queued events, and waits for some until `limit` has passed. False once run() ended
  /// and there will be none any more.
  bool take(std::vector<TokenEvent>& events, std::chrono::nanoseconds limit);

 private:
  bool advance(std::string& cause);
  void queue(std::vector<TokenEvent>& events);

  Loop& loop_;
  std::atomic<bool> closed_ = false;
  std::atomic<bool> interrupted_ = false;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<TokenEvent> events_;
  bool ended_ = false;
};

}  // namespace kernwright::engine
