// Requests, their cancels and masks, on the way from any thread to the loop.
#pragma once

#include "engine/sequence.h"

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

namespace kernwright::engine {

/// Numbers requests, counts waiting ones, and their sequences until their ends are known
/// outside. Thread-safe.
class Inbox {
 public:
  struct Cancel {
    std::uint64_t request = 0;
    std::int32_t choice = -1;  ///< -1: all
    Finish reason = Finish::cancelled;
    std::string error{};
  };
  /// The tokens that may come next in a guided sequence, and guesses of them.
  struct NextMask {
    std::uint64_t request = 0;
    std::int32_t choice = 0;
    TokenMask mask{};
    std::int32_t produced = -1;          ///< tokens that it is the mask behind; -1: all
    std::vector<std::int32_t> drafts{};  ///< that the masks allow
    std::vector<TokenMask> masks{};      ///< behind each of the drafts
  };
  struct Contents {
    std::vector<std::pair<std::uint64_t, Request>> submitted;
    std::vector<Cancel> cancelled;
    std::vector<NextMask> masks;
  };

  /// With a limit of waiting requests; 0: none.
  explicit Inbox(std::int32_t limit) : limit_(limit) {}

  /// The number of the request, from 1 on; 0 where as many wait as may.
  std::uint64_t submit(Request request);
  void cancel(Cancel cancel);
  void set_mask(NextMask mask);
  /// What came since the last call.
  Contents take();

  /// Whether sequences of submitted requests are not counted as ended.
  bool has_work() const noexcept { return unfinished_.load() != 0; }
  void count_ended(std::int64_t sequences) noexcept { unfinished_ -= sequences; }
  /// So many requests more do not wait any more.
  void count_started(std::int32_t requests) noexcept { waiting_ -= requests; }
  std::int32_t waiting() const noexcept { return waiting_.load(); }
  /// Blocks until has_work(), or until wake().
  void wait_for_work();
  /// Blocks until take() would return something, or `limit` has passed.
  void wait_for_contents(std::chrono::nanoseconds limit);
  /// Ends a wait_for_work() that is under way, or else the next one.
  void wake();

 private:
  const std::int32_t limit_;
  std::mutex mutex_;
  std::condition_variable arrived_;
  bool woken_ = false;
  Contents contents_;
  std::uint64_t last_request_ = 0;
  std::atomic<std::int64_t> unfinished_ = 0;
  std::atomic<std::int32_t> waiting_ = 0;
};

}  // namespace kernwright::engine
