// Finds the fastest of many candidates with few samples: racing, then a paired final.
#pragma once

#include "tune/measure/statistics.h"

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace kernwright {

/// When a race of configurations drops a candidate, and how long its rounds and its final take.
struct RacePlan {
  double drop_ratio = 1.15;  ///< out after the first samples if their least is above this x best
  int survivors = 24;        ///< most candidates in rounds: the best by their first samples
  int min_rounds = 6;        ///< before the paired test may drop a candidate
  int max_rounds = 10;
  double p_value = 0.05;  ///< threshold of the paired test
  int finalists = 6;      ///< of the final, besides the default and the incumbent
  int min_final_rounds = 10;
  int max_final_rounds = 40;  ///< the final goes on until the noise floor is below `tie_band`
  double tie_band = 0.01;     ///< no smaller difference counts
};

enum class RaceStatus : std::uint8_t {
  racing,  ///< in the race (before finish()), or in the final
  slow,    ///< dropped after its first samples
  beaten,  ///< dropped by the paired test, or by its first samples where too many are good
  tied,    ///< as fast as the finalists so far, but found no place among them
  failed,  ///< its sample could not be taken
};

struct RaceEntry {
  std::uint64_t key = 0;  ///< names the candidate; the least one wins among ties
  bool is_kept = false;   ///< the default or the stored incumbent: runs in the final whatever it is
  RaceStatus status = RaceStatus::racing;
  std::vector<double> times;  ///< all samples, in the order taken
};

/// A candidate of the final.
struct RaceStanding {
  std::uint64_t key = 0;
  double median = 0;              ///< of its samples in the final
  Interval interval;              ///< of that median
  PairedComparison against_best;  ///< ratio 1 for the fastest itself
  bool is_tied = false;           ///< not distinguishable from the fastest
};

struct RaceResult {
  std::uint64_t winner = 0;  ///< the least key of those within half the band of the fastest
  double median = 0;         ///< of the winner, in the final
  Interval interval;
  /// Keys of the candidates as fast as the fastest within the noise, ascending, with the winner.
  std::vector<std::uint64_t> ties;
  double noise_floor = 0;           ///< the final may miss relative differences below it
  std::vector<RaceStanding> final;  ///< fastest first
  const RaceStanding* standing(std::uint64_t key) const noexcept;
};

/// A race of configurations. Pure logic over a function for samples of a candidate: no device, no
/// clock. Not thread-safe.
class Race {
 public:
  /// One more sample of the candidate, in any unit; nothing (or no positive number) if it cannot be
  /// taken: the candidate is out. Its exceptions pass through and leave the race whole.
  using Sample = std::function<std::optional<double>(std::uint64_t key)>;

  /// Throws InvalidArgument for a plan without a meaning.
  explicit Race(RacePlan plan = {});

  /// A candidate with its samples so far, two as a rule; none: it failed. Returns whether it is
  /// still in the race. Throws InvalidArgument for an existing key and for samples not above 0.
  bool add(std::uint64_t key, std::span<const double> first_samples, bool is_kept = false);

  /// The least sample seen; nothing before there is one.
  std::optional<double> best_sample() const noexcept { return best_; }
  /// Whether a candidate with this least sample would be dropped.
  bool is_slow(double least_sample) const noexcept;

  std::span<const RaceEntry> entries() const noexcept { return entries_; }
  const RaceEntry* find(std::uint64_t key) const noexcept;

  /// Interleaved rounds of the survivors, in alternating order, with the paired test; then the
  /// final of the fastest, the default and the incumbent. Nothing when no candidate is left.
  /// `sample` is called for one candidate after the other, at most
  /// max_rounds * survivors + max_final_rounds * (finalists + kept ones) times.
  std::optional<RaceResult> finish(const Sample& sample);

 private:
  struct Rounds;
  void drop_slow();
  std::vector<std::size_t> survivors();
  void run_round(Rounds& rounds, const Sample& sample);
  void drop_beaten(Rounds& rounds);
  std::vector<std::size_t> run_rounds(const Sample& sample);
  void drop_untied(const RaceEntry& best);
  RaceResult judge(const Rounds& rounds) const;

  RacePlan plan_;
  std::vector<RaceEntry> entries_;
  std::map<std::uint64_t, std::size_t> index_;  ///< of a key in entries_
  std::optional<double> best_;
};

}  // namespace kernwright
