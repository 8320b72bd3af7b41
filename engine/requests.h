// The requests of an engine until they end: their sequences, deadlines and counts.
#pragma once

#include "engine/sequence.h"

#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <unordered_map>
#include <vector>

namespace kernwright::engine {

struct RequestCounts {
  std::int32_t running = 0;  ///< requests behind the queue
  std::int32_t waiting = 0;  ///< requests in the queue
  /// Requests that left the queue: started = finished + aborted + failed + running.
  std::int64_t started = 0, finished = 0, aborted = 0, failed = 0;
};

/// Not thread-safe.
class Requests {
 public:
  using Clock = std::chrono::steady_clock;
  using SequencePtr = std::shared_ptr<Sequence>;

  bool is_empty() const noexcept { return requests_.empty(); }
  const RequestCounts& counts() const noexcept { return counts_; }

  /// Queues a request with all its sequences: one at least.
  void add(std::uint64_t number, std::vector<SequencePtr> sequences);
  /// The sequences left of a request; none after its end.
  std::vector<SequencePtr> sequences(std::uint64_t number) const;
  /// The sequence of a choice; null after its end.
  SequencePtr find(std::uint64_t number, std::int32_t choice) const;
  /// A sequence of any request; null without one.
  SequencePtr any() const;
  bool uses_adapter(std::int32_t slot) const noexcept;
  /// A request whose deadline is over.
  std::optional<std::uint64_t> expired(Clock::time_point now) const;

  /// It leaves the queue; only the first time counts.
  void start(std::uint64_t number);
  /// Takes a sequence out of its request. The last one ends the request, as the worst of them.
  SequencePtr end(const Sequence& sequence, Outcome outcome);

 private:
  struct Active {
    std::vector<SequencePtr> sequences;
    std::multimap<Clock::time_point, std::uint64_t>::iterator deadline;
    bool started = false;
    Outcome outcome = Outcome::finished;  ///< the worst of its sequences
  };

  std::unordered_map<std::uint64_t, Active> requests_;
  std::multimap<Clock::time_point, std::uint64_t> deadlines_;
  RequestCounts counts_;
};

}  // namespace kernwright::engine
