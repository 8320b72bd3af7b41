// The participants, the number of rounds, and the sampling.
#include "tune/session/final_comparison.h"

#include "tune/session/trial_error.h"

#include <algorithm>
#include <chrono>
#include <exception>
#include <utility>

namespace kernwright {
namespace {

constexpr std::size_t kMostFinalists = 12;
// It may take this part of the session's time, and this many seconds at least.
constexpr double kFinalPart = 0.15, kLeastFinal = 2;
constexpr int kLeastRounds = 12;
constexpr double kLookPart = 0.25;  // of it, for a second look at those that seem slow
/// A trial further behind the best was not slowed by a low clock alone.
constexpr double kThrottled = 1.25;

/// Seconds of a sample: a multiple of the kernel's own time, and the overhead.
double sample_s(const Trial& trial) { return 2 * *trial.median_ms / 1000 + 0.003; }

}  // namespace

FinalComparison::FinalComparison(TrialBackend& backend, const SessionOptions& options,
                                 const SessionClock& clock, StopFlag stop)
    : backend_(backend), options_(options), clock_(clock), stop_(std::move(stop)) {}

void FinalComparison::enter(const Trial& trial) {
  const auto is_time = [](double time) { return time > 0; };
  if (trial.times_ms.empty() || !std::all_of(trial.times_ms.begin(), trial.times_ms.end(), is_time))
    return;
  race_.add(trial.index, trial.times_ms, trial.index == options_.default_index);
}

void FinalComparison::keep(const Trial& trial, TrialWorkRef work) {
  if (!trial.is_correct() || race_.find(trial.index) == nullptr) return;
  works_[trial.index] = std::move(work);
  if (works_.size() <= 2 * kMostFinalists) return;
  works_.erase(std::max_element(works_.begin(), works_.end(), [&](const auto& a, const auto& b) {
    return race_.find(a.first)->times.front() < race_.find(b.first)->times.front();
  }));
}

/// The work kept by the trial, or new work for a trial of an earlier session.
TrialWorkRef FinalComparison::find_work(std::uint64_t index, const WaitLimits& limits) {
  TrialWorkRef& work = works_[index];
  if (work == nullptr) {
    TrialWorkRef made = backend_.plan(index);
    backend_.compile(*made, limits);
    backend_.bind(*made);
    work = std::move(made);
  }
  return work;
}

std::optional<double> FinalComparison::sample(std::uint64_t index) {
  WaitLimits limits;
  limits.stop = stop_;
  limits = limits.within(
      std::chrono::milliseconds(static_cast<std::int64_t>(1000 * options_.run_timeout_s)));
  try {
    check_wait(limits, "the tuning session");
    const TrialWorkRef work = find_work(index, limits);
    backend_.load(0, *work, limits);
    const TrialSamples samples = backend_.sample(0, *work, 1, 0, limits);
    if (samples.times_ms.empty()) return std::nullopt;
    return samples.times_ms.front();
  } catch (...) {
    if (is_cancelled(std::current_exception())) throw;
    if (!trial_failure(std::current_exception(), TrialStage::run, backend_.is_isolated())) throw;
    return std::nullopt;
  }
}

void FinalComparison::sort_by_rank(Finalists& found) {
  std::sort(found.begin(), found.end(), [](const Finalist& a, const Finalist& b) {
    return std::pair(a.rank, a.trial->index) < std::pair(b.rank, b.trial->index);
  });
}

/// The possible participants, the fastest first.
FinalComparison::Finalists FinalComparison::ranked(
    const std::vector<std::unique_ptr<Trial>>& trials) const {
  Finalists found;
  for (const auto& trial : trials) {
    if (trial->is_correct() && !trial->same_as && race_.find(trial->index) != nullptr)
      found.push_back({trial.get(), trial->times_ms, *trial->median_ms});
  }
  sort_by_rank(found);
  return found;
}

/// A candidate throttled during all its samples looks slow. Those not far behind get one more
/// sample each, and another when the clock may be a different one.
void FinalComparison::look_again(Finalists& found, double seconds) {
  const double until = clock_.now() + seconds;
  const double limit = kThrottled * found.front().rank;
  const auto end = std::find_if(found.begin(), found.end(),
                                [&](const Finalist& one) { return one.rank > limit; });
  for (int pass = 0; pass < 2; ++pass) {
    for (auto one = found.begin(); one != end && clock_.now() < until; ++one) {
      const std::optional<double> time = sample(one->trial->index);
      if (!time || !(*time > 0)) continue;
      one->times.push_back(*time);
      one->rank = std::min(one->rank, *time);
    }
  }
  sort_by_rank(found);
}

/// Leaves the fastest ones, and the default; fewer where `seconds` do not suffice for many.
void FinalComparison::choose(Finalists& found, double seconds) {
  const auto places = static_cast<std::size_t>(std::clamp(
      seconds / (kLeastRounds * sample_s(*found.front().trial)), 2.0, double{kMostFinalists}));
  if (found.size() <= places) return;
  look_again(found, kLookPart * seconds);
  found.erase(std::remove_if(
                  found.begin() + static_cast<std::ptrdiff_t>(places), found.end(),
                  [&](const Finalist& one) { return one.trial->index != options_.default_index; }),
              found.end());
}

std::optional<RaceResult> FinalComparison::run(const std::vector<std::unique_ptr<Trial>>& trials) {
  if (is_left_out_) return std::nullopt;
  const double seconds = std::max(kLeastFinal, kFinalPart * clock_.now());
  Finalists found = ranked(trials);
  if (found.empty()) return std::nullopt;
  choose(found, seconds);
  RacePlan plan;
  const double rounds = seconds / 2 / (double(found.size()) * sample_s(*found.front().trial));
  plan.max_rounds =
      static_cast<int>(std::clamp(rounds, double(plan.min_rounds), double(plan.max_rounds)));
  plan.max_final_rounds = static_cast<int>(
      std::clamp(rounds, double(plan.min_final_rounds), double(plan.max_final_rounds)));
  Race race(plan);
  for (const Finalist& one : found)
    race.add(one.trial->index, one.times, one.trial->index == options_.default_index);
  return race.finish([this](std::uint64_t index) { return sample(index); });
}

}  // namespace kernwright
