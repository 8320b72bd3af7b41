// Requests, and their cancels, on the way from any thread to the loop.
#pragma once

#include "engine/sequence.h"

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <utility>
#include <vector>

namespace kernwright::engine {

/// Numbers requests, and counts their sequences until these ends are known outside. Thread-safe.
class Inbox {
 public:
  struct Cancel {
    std::uint64_t request = 0;
    std::int32_t choice = -1;  ///< -1: all
    Finish reason = Finish::cancelled;
  };
  struct Contents {
    std::vector<std::pair<std::uint64_t, Request>> submitted;
    std::vector<Cancel> cancelled;
  };

  /// The number of the request, from 1 on.
  std::uint64_t submit(Request request);
  void cancel(const Cancel& cancel);
  /// What came since the last call.
  Contents take();
  /// Requests that take() has not returned yet.
  std::int32_t size() const;

  /// Whether sequences of submitted requests are not counted as ended.
  bool has_work() const noexcept { return unfinished_.load() != 0; }
  void count_ended(std::int64_t sequences) noexcept { unfinished_ -= sequences; }
  /// Blocks until has_work(), or until wake().
  void wait_for_work();
  /// Ends a wait_for_work() that is under way, or else the next one.
  void wake();

 private:
  mutable std::mutex mutex_;
  std::condition_variable arrived_;
  bool woken_ = false;
  Contents contents_;
  std::uint64_t last_request_ = 0;
  std::atomic<std::int64_t> unfinished_ = 0;
};

}  // namespace kernwright::engine
