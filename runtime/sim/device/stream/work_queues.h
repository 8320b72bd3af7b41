// The streams' queues, and the choice of the next one.
#pragma once

#include "sim/device/stream/work.h"

#include <atomic>
#include <condition_variable>
#include <functional>
#include <mutex>
#include <optional>
#include <vector>

namespace kernwright::sim {

/// A stream with its context in use; default streams have no context of their own.
struct StreamUse {
  std::shared_ptr<Context> context;
  std::shared_ptr<Stream> stream;
};

/// Work waiting in a stream.
struct QueuedWork {
  Work work;
  std::shared_ptr<Mark> end = std::make_shared<Mark>();
  std::vector<std::shared_ptr<Mark>> after;  ///< besides the stream's earlier work
  std::shared_ptr<const OrderedWork> order;  ///< null while the order of streams is not checked
};

/// Without a seed work runs when it is issued, in issue order: a legal order of all streams. With a
/// seed it waits until a call waits for it or queries it, or too much waits. Then the seed chooses,
/// step by step, among the streams with runnable oldest work. Calls of one thread with the same
/// seed give the same order. Thread-safe. No lock is held while work runs.
class WorkQueues {
 public:
  bool deferred() const noexcept { return deferred_.load(std::memory_order_relaxed); }
  /// Finishes everything first. The same seed again starts the same choices anew.
  void set_seed(std::optional<std::uint64_t> seed);
  /// A number for a choice at the time of issue; 0 without a seed.
  std::uint64_t draw();

  /// Runs the work or queues it, after the marks in `after` too. Throws Failure for arguments that
  /// cannot be right, and without a seed for all errors.
  std::shared_ptr<Mark> issue(const StreamUse& use, Work&& work,
                              std::vector<std::shared_ptr<Mark>> after = {});

  // Each runs the necessary work until the condition holds. Errors meanwhile are kept in the
  // contexts.
  void finish(const Mark& mark);
  /// All work of the stream; for the legacy stream also that of all blocking ones.
  void finish(const StreamUse& use);
  void finish(const Context& context);
  void finish_all();
  /// The same question without waiting: some work may run first.
  bool query(const Mark& mark);
  bool query(const StreamUse& use);

  /// Throws the context's first error since the last call, if any.
  void surface(const Context& context);
  /// Forgets it.
  void forget_failure(const Context& context);

 private:
  using Lock = std::unique_lock<std::mutex>;
  using Condition = std::function<bool()>;
  struct Kept {
    std::uint64_t context_id;
    std::exception_ptr failure;
  };

  bool holds_work(const StreamUse& use) const;
  bool holds_work(const Context& context) const;
  StreamUse* choose();
  bool run_one(Lock& lock);
  void run_until(Lock& lock, const Condition& over);
  template <typename Over>
  void finish_until(const Over& over);
  template <typename Over>
  bool query_whether(const Over& over);
  std::shared_ptr<Mark> enqueue(const StreamUse& use, std::shared_ptr<QueuedWork> item);
  void keep(const Context& context, std::exception_ptr failure);

  std::atomic<bool> deferred_{false};
  mutable std::mutex mutex_;  // guards the rest and the queues of streams
  std::condition_variable changed_;
  std::vector<StreamUse> active_;  // streams with work, in the order in which they got it
  const Stream* favourite_ = nullptr;
  std::size_t waiting_ = 0;
  int running_ = 0;
  std::uint64_t state_ = 0;  // of the choices
  std::vector<Kept> kept_;
};

}  // namespace kernwright::sim
