// The fastest trials of a session, compared again in interleaved rounds.
#pragma once

#include "tune/measure/race.h"
#include "tune/session/session.h"
#include "tune/session/session_clock.h"

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <vector>

namespace kernwright {

/// For the session's thread.
class FinalComparison {
 public:
  /// All must outlive it. `stop` ends its runs.
  FinalComparison(TrialBackend& backend, const SessionOptions& options, const SessionClock& clock,
                  StopFlag stop);

  /// A correct trial; one with times takes part.
  void enter(const Trial& trial);
  /// Keeps the trial's work: a few of the fastest have it, for others it is made anew on demand.
  void keep(const Trial& trial, TrialWorkRef work);
  /// The least time of the entered trials.
  std::optional<double> best_sample() const { return race_.best_sample(); }

  /// The default takes part however slow it is. Nothing where none entered or none could be
  /// sampled.
  std::optional<RaceResult> run(const std::vector<std::unique_ptr<Trial>>& trials);
  /// run() samples nothing, and has no result.
  void leave_out() { is_left_out_ = true; }

 private:
  struct Finalist {
    const Trial* trial;
    std::vector<double> times;
    double rank;  ///< the median, or a later sample
  };
  using Finalists = std::vector<Finalist>;

  static void sort_by_rank(Finalists& found);
  Finalists ranked(const std::vector<std::unique_ptr<Trial>>& trials) const;
  void look_again(Finalists& found, double seconds);
  void choose(Finalists& found, double seconds);
  TrialWorkRef find_work(std::uint64_t index, const WaitLimits& limits);
  std::optional<double> sample(std::uint64_t index);

  TrialBackend& backend_;
  const SessionOptions& options_;
  const SessionClock& clock_;
  StopFlag stop_;
  Race race_;
  bool is_left_out_ = false;
  std::map<std::uint64_t, TrialWorkRef> works_;  ///< of the fastest so far, by index
};

}  // namespace kernwright
