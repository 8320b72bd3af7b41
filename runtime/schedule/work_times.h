// Measured times of equal work, and whether its launches are cut into pieces.
#pragma once

#include "core/launch/launch_pieces.h"
#include "schedule/clock.h"

#include <array>
#include <cstddef>

namespace kernwright::schedule {

/// The latest measured times of equal work. Not thread-safe.
class WorkTimes {
 public:
  static constexpr std::size_t kKept = 16;  ///< measurements that quartile() and least() look at

  void add(Time busy) noexcept;
  std::size_t count() const noexcept { return count_; }  ///< all that were added
  Time mean() const noexcept { return mean_; }           ///< of recent ones
  /// A quarter of them took less: urgent work beside it makes work longer. 0 without one.
  Time quartile() const noexcept;
  /// What the work takes alone; 0 without one.
  Time least() const noexcept;

 private:
  std::size_t kept() const noexcept { return count_ < kKept ? count_ : kKept; }

  std::array<Time, kKept> latest_{};
  std::size_t count_ = 0;
  Time mean_{0};
};

/// Whether launches of some work are cut. Pieces that together take more than kMostCost times as
/// long as the whole do not pay: the work stays whole for kHolds, then pieces are tried again. That
/// is decided by quartiles, of kSure pieces and of kWholeRuns runs made behind the pieces: one run
/// alone may be an outlier, and a device is slower once it is warm. Not thread-safe.
class CutChoice {
 public:
  static constexpr double kMostCost = 1.25;
  static constexpr std::size_t kSure = WorkTimes::kKept, kWholeRuns = 3;
  static constexpr Time kHolds = std::chrono::seconds(2);

  /// The work is as long as so many pieces, most of them `piece`, which is judged where it has a
  /// key; the last one may be short. 0: it cannot be cut, and stays whole for good.
  void note(const WorkKey& piece, double pieces) noexcept;
  const WorkKey& piece() const noexcept { return piece_; }
  /// Whether the next launch goes whole. `pieces`: null without a measurement.
  bool stays_whole(const WorkTimes& whole, const WorkTimes* pieces, Time now) noexcept;

 private:
  WorkKey piece_{};
  double pieces_ = 0;
  bool cannot_ = false;
  bool stays_ = false;       ///< the last decision
  Time until_{0};            ///< when it ends
  std::size_t judged_ = 0;   ///< measurements of pieces at that time
  std::size_t awaited_ = 0;  ///< of the whole, for the next decision; 0: none is due
};

}  // namespace kernwright::schedule
