// A tuning session: asks a strategy, compiles, runs and measures, and loses nothing.
#pragma once

#include "tune/search/strategy.h"
#include "tune/session/budget.h"
#include "tune/session/compile_estimate.h"
#include "tune/session/trial.h"
#include "tune/session/trial_backend.h"

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace kernwright {

/// A lane of the session begins or ends its work on a trial.
struct LaneEvent {
  bool is_gpu = false;  ///< else a compile
  bool begins = false;
  std::uint64_t trial = 0;
  double seconds = 0;  ///< since the session began
};

struct SessionOptions {
  Budget budget{};
  /// One of strategy_names(). Empty: brute force where the whole space fits the budget, else the
  /// first of them.
  std::string strategy{};
  std::uint64_t seed = 0;
  /// Measured first; the final comparison has it, too.
  std::optional<std::uint64_t> default_index{};
  std::vector<std::uint64_t> initial{};  ///< to try next
  /// Gives further configurations to try next; tried ones are left out. It is called at the start,
  /// and again after every eighth trial. When none is left, the strategy proposes.
  std::function<std::vector<std::uint64_t>()> propose{};
  /// Questions without an answer at most; 0: by the lanes. What is asked depends on it.
  unsigned window = 0;
  unsigned samples = 8;  ///< of a configuration not far behind the best
  CompileDeadlines compile_deadlines{};
  double run_timeout_s = 30;  ///< of one verification or series of samples
  /// Results of earlier sessions, by index: their trials are not run again.
  std::map<std::uint64_t, Trial> known{};

  // All three are called in the session's thread.
  /// Sets the score of a correct trial, or turns it into a failure. Null: the median time.
  std::function<void(Trial&)> score{};
  /// A trial has ended: keeps it, before anybody hears of it.
  std::function<void(const Trial&)> record{};
  std::function<void(const LaneEvent&)> lane_event{};
};

/// The results of a session.
struct SessionResult {
  std::optional<std::uint64_t> best{};  ///< index of the winner; nothing where all failed
  std::optional<double> median_ms{};    ///< of the winner
  std::optional<std::pair<double, double>> interval_ms{};
  std::optional<double> score{};
  std::optional<double> default_ms{};
  std::optional<double> default_score{};
  std::vector<std::uint64_t> ties{};  ///< indices of the winner and of all as fast within the noise
  double noise = 0;                   ///< of the final comparison, as a part of the time
  SessionEnd reason = SessionEnd::complete;
  std::uint64_t evaluations = 0;
  double seconds = 0;
};

/// Trials end in any order. The strategy gets the results in the order of its questions. So the
/// same seed and the same results give the same questions, independent of their times. If a stuck
/// trial would leave lanes idle, they try others: Trial::is_extra.
///
/// One thread at a time calls it; any thread may call stop().
class Session {
 public:
  /// `space` and `backend` must outlive it. Throws InvalidArgument for an invalid budget or index,
  /// NameNotFound for an unknown strategy, and as Space::configurations() does.
  Session(const Space& space, TrialBackend& backend, SessionOptions options);
  /// Stops running trials.
  ~Session();
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

  /// The next finished trial, null when the session is over. Between two calls the lanes finish
  /// their work. Throws Interrupted, and errors that end a session (no compiler, no device).
  /// Results so far are kept.
  const Trial* next();
  /// Ends the search and compares the best ones, the default among them, in interleaved rounds.
  const SessionResult& finish();
  /// All of it.
  const SessionResult& run();
  /// No new trials, and those in flight are given up. Thread-safe, also in a signal handler.
  void stop() noexcept;

  /// A configuration to measure elsewhere, its number and index; nothing when the budget
  /// is used up.
  std::optional<Trial> ask();
  /// Its outcome: score, median or times for a correct one, or a status with its error. Throws
  /// InvalidArgument for a number not asked, or already told.
  const Trial& tell(Trial trial);

  const std::vector<std::unique_ptr<Trial>>& trials() const;
  /// The best so far; null where none is correct.
  const Trial* best() const;
  /// The result so far; after finish() with the final comparison.
  SessionResult result() const;

 private:
  class Engine;
  std::unique_ptr<Engine> engine_;
};

}  // namespace kernwright
