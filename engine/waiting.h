// The order of waiting sequences: by priority, then by turns of their users.
#pragma once

#include "engine/sequence.h"

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <unordered_map>

namespace kernwright::engine {

/// Counts the tokens computed for each user. A user who comes back begins with the least
/// of the present ones: nobody saves time by being away. Not thread-safe.
class FairShares {
 public:
  /// A sequence more, or less, of a user.
  std::shared_ptr<Account> enter(const std::string& user);
  void leave(const std::shared_ptr<Account>& account) noexcept { --account->active; }
  std::size_t size() const noexcept { return accounts_.size(); }

 private:
  void forget_absent(std::int64_t least);

  std::unordered_map<std::string, std::shared_ptr<Account>> accounts_;
};

/// Sequences without a row. Higher priorities go first; within one the preempted sequences,
/// the earliest admitted first; then the earliest of the user with the fewest tokens so far. Not
/// thread-safe.
class WaitingQueue {
 public:
  using SequencePtr = std::shared_ptr<Sequence>;

  void add(const SequencePtr& sequence);
  /// A sequence elsewhere is left alone.
  void remove(const Sequence& sequence);
  /// Whose turn it is; none in an empty queue.
  SequencePtr first() const;
  std::size_t size() const noexcept { return size_; }
  /// Whether a sequence that had no row yet would be in front of another one.
  static bool is_before(const Sequence& sequence, const Sequence& other) noexcept;
  void visit(const std::function<void(Sequence&)>& call) const;

 private:
  struct Level {
    std::deque<SequencePtr> preempted;
    std::map<std::shared_ptr<Account>, std::deque<SequencePtr>> others;
    bool empty() const noexcept { return preempted.empty() && others.empty(); }
  };

  std::map<std::int32_t, Level, std::greater<>> levels_;
  std::size_t size_ = 0;
};

}  // namespace kernwright::engine
