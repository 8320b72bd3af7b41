// Racing: the first samples, rounds side by side, and the final.
#include "tune/measure/race.h"

#include "base/errors.h"
#include "base/format.h"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace kernwright {
namespace {

bool is_sample(double time) { return std::isfinite(time) && time > 0; }

double least(const std::vector<double>& times) {
  return *std::min_element(times.begin(), times.end());
}

}  // namespace

/// Samples taken side by side: all lists of `times` have the same length.
struct Race::Rounds {
  std::vector<std::size_t> entries;  ///< places in entries_
  std::vector<std::vector<double>> times;
  int count = 0;

  explicit Rounds(std::vector<std::size_t> who) : entries(std::move(who)), times(entries.size()) {}

  /// The place in `entries` of the one with the least median; `entries` must not be empty.
  std::size_t fastest() const {
    std::size_t best = 0;
    for (std::size_t i = 1; i < entries.size(); ++i) {
      if (median(times[i]) < median(times[best])) best = i;
    }
    return best;
  }
  std::size_t slowest() const {
    std::size_t worst = 0;
    for (std::size_t i = 1; i < entries.size(); ++i) {
      if (median(times[i]) > median(times[worst])) worst = i;
    }
    return worst;
  }
  void remove(std::size_t place) {
    entries.erase(entries.begin() + static_cast<std::ptrdiff_t>(place));
    times.erase(times.begin() + static_cast<std::ptrdiff_t>(place));
  }
};

const RaceStanding* RaceResult::standing(std::uint64_t key) const noexcept {
  const auto at = std::find_if(final.begin(), final.end(),
                               [key](const RaceStanding& one) { return one.key == key; });
  return at == final.end() ? nullptr : &*at;
}

Race::Race(RacePlan plan) : plan_(plan) {
  if (!(plan.drop_ratio >= 1) || plan.min_rounds < 1 || plan.max_rounds < plan.min_rounds ||
      plan.survivors < 1 || plan.finalists < 1 || plan.min_final_rounds < 1 ||
      plan.max_final_rounds < plan.min_final_rounds || !(plan.tie_band >= 0) ||
      !(plan.p_value >= 0 && plan.p_value <= 1)) {
    throw InvalidArgument(format(
        "a race with drop_ratio={}, rounds {} to {}, survivors={}, finalists={}, final "
        "rounds {} to {}, tie_band={}, p_value={}: ratios are at least 1, counts at least 1, "
        "and no maximum is below its minimum",
        plan.drop_ratio, plan.min_rounds, plan.max_rounds, plan.survivors, plan.finalists,
        plan.min_final_rounds, plan.max_final_rounds, plan.tie_band, plan.p_value));
  }
}

bool Race::add(std::uint64_t key, std::span<const double> first_samples, bool is_kept) {
  if (index_.contains(key))
    throw InvalidArgument(format("candidate {} is in the race already", key));
  for (const double time : first_samples) {
    if (!is_sample(time)) {
      throw InvalidArgument(
          format("a sample of {} of candidate {}: it must be positive", time, key));
    }
  }
  index_.emplace(key, entries_.size());
  RaceEntry& entry = entries_.emplace_back();
  entry.key = key;
  entry.is_kept = is_kept;
  entry.times.assign(first_samples.begin(), first_samples.end());
  if (entry.times.empty()) {
    entry.status = RaceStatus::failed;
  } else if (!is_kept && is_slow(least(entry.times))) {
    entry.status = RaceStatus::slow;
  }
  if (!entry.times.empty()) {
    best_ = best_ ? std::min(*best_, least(entry.times)) : least(entry.times);
  }
  return entry.status == RaceStatus::racing;
}

bool Race::is_slow(double least_sample) const noexcept {
  return best_ && least_sample > plan_.drop_ratio * *best_;
}

const RaceEntry* Race::find(std::uint64_t key) const noexcept {
  const auto at = index_.find(key);
  return at == index_.end() ? nullptr : &entries_[at->second];
}

void Race::drop_slow() {
  for (RaceEntry& entry : entries_) {
    if (entry.status == RaceStatus::racing && !entry.is_kept && is_slow(least(entry.times))) {
      entry.status = RaceStatus::slow;
    }
  }
}

/// The possible winners, the most promising first, at most the plan's `survivors`; the rest are
/// ties until the rounds show the speed of the best.
std::vector<std::size_t> Race::survivors() {
  std::vector<std::size_t> all;
  for (std::size_t i = 0; i < entries_.size(); ++i) {
    const RaceEntry& entry = entries_[i];
    // The default and the incumbent wait for the final when they are slow.
    if (entry.status == RaceStatus::racing && !is_slow(least(entry.times))) all.push_back(i);
  }
  std::sort(all.begin(), all.end(), [this](std::size_t a, std::size_t b) {
    const double first = median(entries_[a].times), second = median(entries_[b].times);
    return first != second ? first < second : entries_[a].key < entries_[b].key;
  });
  const auto most = static_cast<std::size_t>(plan_.survivors);
  for (std::size_t i = most; i < all.size(); ++i) {
    RaceEntry& entry = entries_[all[i]];
    if (!entry.is_kept) entry.status = RaceStatus::tied;
  }
  all.resize(std::min(all.size(), most));
  return all;
}

/// One sample of each. Every other round runs in reverse order, so that drift affects all equally.
void Race::run_round(Rounds& rounds, const Sample& sample) {
  std::vector<std::size_t> order(rounds.entries.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  if (rounds.count % 2 == 1) std::reverse(order.begin(), order.end());
  std::vector<double> taken(order.size(), 0.0);
  for (const std::size_t place : order) {
    RaceEntry& entry = entries_[rounds.entries[place]];
    const std::optional<double> time = sample(entry.key);
    if (time && is_sample(*time)) {
      taken[place] = *time;
      entry.times.push_back(*time);
    } else {
      entry.status = RaceStatus::failed;
    }
  }
  for (std::size_t place = taken.size(); place-- > 0;) {
    if (taken[place] > 0) {
      rounds.times[place].push_back(taken[place]);
    } else {
      rounds.remove(place);
    }
  }
  ++rounds.count;
}

void Race::drop_beaten(Rounds& rounds) {
  if (rounds.entries.empty()) return;
  const std::vector<double> best = rounds.times[rounds.fastest()];
  for (std::size_t place = rounds.entries.size(); place-- > 0;) {
    RaceEntry& entry = entries_[rounds.entries[place]];
    const PairedComparison against = compare_pairs(rounds.times[place], best);
    if (against.ratio <= 1 + plan_.tie_band || against.p_value > plan_.p_value) continue;
    if (!entry.is_kept) entry.status = RaceStatus::beaten;
    rounds.remove(place);
  }
}

/// For those without a round or a place in the final: one never as fast as the band around the best
/// allows is no tie.
void Race::drop_untied(const RaceEntry& best) {
  const double limit = (1 + plan_.tie_band) * median(best.times);
  for (RaceEntry& entry : entries_) {
    if (entry.status == RaceStatus::tied && least(entry.times) > limit) {
      entry.status = RaceStatus::beaten;
    }
  }
}

/// The best of the rounds, with the default and the incumbent. A candidate left out only for lack
/// of a place counts as a tie.
std::vector<std::size_t> Race::run_rounds(const Sample& sample) {
  Rounds rounds(survivors());
  const auto places = static_cast<std::size_t>(plan_.finalists);
  while (rounds.entries.size() > places && rounds.count < plan_.max_rounds) {
    run_round(rounds, sample);
    if (rounds.count >= plan_.min_rounds) drop_beaten(rounds);
  }
  while (rounds.entries.size() > places) {
    const std::size_t slowest = rounds.slowest();
    RaceEntry& entry = entries_[rounds.entries[slowest]];
    if (!entry.is_kept) entry.status = RaceStatus::tied;
    rounds.remove(slowest);
  }
  if (!rounds.entries.empty()) drop_untied(entries_[rounds.entries[rounds.fastest()]]);
  std::vector<std::size_t> finalists = rounds.entries;
  for (std::size_t i = 0; i < entries_.size(); ++i) {
    const bool is_there = std::find(finalists.begin(), finalists.end(), i) != finalists.end();
    if (entries_[i].is_kept && entries_[i].status == RaceStatus::racing && !is_there) {
      finalists.push_back(i);
    }
  }
  return finalists;
}

RaceResult Race::judge(const Rounds& rounds) const {
  const std::vector<double>& best = rounds.times[rounds.fastest()];
  RaceResult result;
  for (const RaceEntry& entry : entries_) {
    if (entry.status == RaceStatus::tied) result.ties.push_back(entry.key);
  }
  for (std::size_t place = 0; place < rounds.entries.size(); ++place) {
    const std::vector<double>& times = rounds.times[place];
    RaceStanding one;
    one.key = entries_[rounds.entries[place]].key;
    one.median = median(times);
    one.interval = median_interval(times);
    if (&times != &best) one.against_best = compare_pairs(times, best);
    const PairedComparison& against = one.against_best;
    one.is_tied = against.ratio <= 1 + plan_.tie_band || against.interval.low <= 1;
    if (one.is_tied) {
      // A difference larger than the interval's half width would have been seen.
      result.noise_floor =
          std::max(result.noise_floor, (against.interval.high - against.interval.low) / 2);
      result.ties.push_back(one.key);
    }
    result.final.push_back(one);
  }
  std::sort(result.ties.begin(), result.ties.end());
  std::sort(result.final.begin(), result.final.end(), [](const auto& a, const auto& b) {
    return a.against_best.ratio != b.against_best.ratio
               ? a.against_best.ratio < b.against_best.ratio
               : a.key < b.key;
  });
  // NOTE: only half of the band, and no candidate that only noise keeps among the ties: the choice
  // costs little, and lies well inside the tie set of the next race.
  const RaceStanding* winner = &result.final.front();
  for (const RaceStanding& one : result.final) {
    if (one.against_best.ratio <= 1 + plan_.tie_band / 2 && one.key < winner->key) winner = &one;
  }
  result.winner = winner->key;
  result.median = winner->median;
  result.interval = winner->interval;
  return result;
}

std::optional<RaceResult> Race::finish(const Sample& sample) {
  drop_slow();
  Rounds rounds(run_rounds(sample));
  while (!rounds.entries.empty() && rounds.count < plan_.max_final_rounds) {
    run_round(rounds, sample);
    if (rounds.entries.size() <= 1 && rounds.count >= plan_.min_final_rounds) break;
    if (rounds.count < plan_.min_final_rounds || rounds.entries.empty()) continue;
    if (judge(rounds).noise_floor <= plan_.tie_band) break;
  }
  if (rounds.entries.empty()) return {};
  return judge(rounds);
}

}  // namespace kernwright
