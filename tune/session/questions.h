// Questions of a session's search, and their answers in the order of the questions.
#pragma once

#include "tune/search/strategy.h"
#include "tune/session/session.h"

#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <set>
#include <vector>

namespace kernwright {

/// A question is an index asked by the search, each once; its answer is a trial with a number. For
/// one thread.
class Questions {
 public:
  /// Both must outlive it. Throws as Session does.
  Questions(const Space& space, const SessionOptions& options);

  /// Whether no answer changes a question.
  bool has_fixed_order() const;
  /// The index of the next question; nothing when there is none left. expect() must follow.
  std::optional<std::uint64_t> ask();
  bool is_exhausted() const { return is_exhausted_; }
  /// The trial that answers the last ask().
  void expect(std::uint64_t number) { open_.push_back(number); }

  /// Questions without an answer: their number, and the trial for the oldest one.
  std::size_t open() const { return open_.size(); }
  std::uint64_t oldest() const { return open_.front(); }
  void answer_oldest(const Trial& trial);

  /// The best of earlier sessions, once. The search may never ask for it, and learns its result
  /// only if it does; so its questions stay those of the earlier session.
  std::optional<std::uint64_t> take_best_known();

 private:
  void take_proposals();
  std::optional<std::uint64_t> next();

  const Space& space_;
  const SessionOptions& options_;
  std::unique_ptr<Strategy> strategy_;
  std::deque<std::uint64_t> proposed_;  ///< to ask for before the strategy is asked
  std::uint64_t propose_after_ = 0;     ///< answers before the next call of `propose`
  std::set<std::uint64_t> asked_;
  std::deque<std::uint64_t> open_;
  std::uint64_t answered_ = 0;
  bool is_exhausted_ = false;
  bool is_best_taken_ = false;
};

/// A second search of the same kind, for trials while the first one waits. It hears of all trials.
class Scout {
 public:
  Scout(const Space& space, const SessionOptions& options);

  /// The next index unknown to `is_taken`, after the new ones of `trials` were told; nothing when
  /// there is none left.
  std::optional<std::uint64_t> next(const std::vector<std::unique_ptr<Trial>>& trials,
                                    const std::function<bool(std::uint64_t)>& is_taken);

 private:
  std::unique_ptr<Strategy> strategy_;
  std::size_t told_ = 0;  ///< of the trials
};

}  // namespace kernwright
