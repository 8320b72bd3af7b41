// After the trials: outcomes, the race of the best, and results of foreign optimisers.
#include "base/errors.h"
#include "base/format.h"
#include "tune/measure/statistics.h"
#include "tune/session/session_engine.h"
#include "tune/session/trial_error.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace kernwright {
namespace {

bool is_cancelled(const std::exception_ptr& error) {
  try {
    std::rethrow_exception(error);
  } catch (const Cancelled&) {
    return true;
  } catch (...) {
    return false;
  }
}

/// What is further behind the best was no faster for want of clock.
constexpr double kThrottled = 1.25;

/// Seconds of a sample: a multiple of the kernel's own time, and the overhead.
double sample_s(const Trial& trial) { return 2 * *trial.median_ms / 1000 + 0.003; }

}  // namespace

void Session::Engine::handle(std::uint64_t event) {
  const auto found = flights_.find(event);
  if (found == flights_.end()) return;
  Flight& flight = *found->second;
  const Stage stage = std::exchange(flight.stage, Stage::ended);
  report(stage == Stage::running, false, flight);
  if (stage == Stage::running) {
    ran(flight);
  } else {
    compiled(flight);
  }
}

void Session::Engine::fail(Flight& flight, TrialStatus status, std::string message) {
  flight.trial.status = status;
  flight.trial.error = std::move(message);
  land(flight);
}

/// Where the session ends, the flight is of no use any more, and so are those that wait for it.
void Session::Engine::fail_by_error(Flight& flight, bool compiling) {
  if (is_cancelled(flight.error)) {
    if (!flight.is_late) {
      for (const std::uint64_t number : flight.followers) flights_.erase(number);
      flights_.erase(flight.trial.number);
      return;
    }
    const double took = flight.trial.compile_ended_s - flight.trial.compile_started_s;
    const std::string expected =
        flight.expected_s ? format(", {:.3g} s were expected", *flight.expected_s) : "";
    fail(flight, TrialStatus::timeout,
         format("the compile was given up after {:.3g} s{}", took, expected));
    return;
  }
  const auto failure = trial_failure(
      flight.error, compiling ? TrialStage::compile : TrialStage::run, backend_.is_isolated());
  if (!failure) std::rethrow_exception(flight.error);
  fail(flight, failure->status, failure->message);
}

void Session::Engine::compiled(Flight& flight) {
  if (flight.error) {
    fail_by_error(flight, true);
    return;
  }
  Trial& trial = flight.trial;
  trial.code = flight.compiled.code;
  trial.compile_s = flight.compiled.compile_s;
  if (trial.compile_s > 0) estimate_.learn(flight.choices, trial.compile_s);
  if (end_) {  // nobody will run it
    flights_.erase(trial.number);
    return;
  }
  try {
    backend_.bind(*flight.work);
  } catch (...) {
    const auto failure = trial_failure(std::current_exception(), TrialStage::run);
    if (!failure) throw;
    fail(flight, failure->status, failure->message);
    return;
  }
  flight.stage = Stage::compiled;
  if (flight.compiled.same_key.empty()) return;
  const auto [leader, is_first] = leaders_.try_emplace(flight.compiled.same_key, trial.number);
  if (is_first) return;
  if (const auto landed = landed_.find(leader->second); landed != landed_.end()) {
    adopt(trial, *landed->second);
    land(flight);
  } else {
    flight.stage = Stage::follows;
    flights_.at(leader->second)->followers.push_back(trial.number);
  }
}

void Session::Engine::adopt(Trial& trial, const Trial& leader) {
  trial.status = leader.status;
  trial.error = leader.error;
  trial.times_ms = leader.times_ms;
  trial.median_ms = leader.median_ms;
  trial.interval_ms = leader.interval_ms;
  trial.metrics = leader.metrics;
  trial.score = leader.score;
  trial.same_as = leader.number;
}

void Session::Engine::ran(Flight& flight) {
  Trial& trial = flight.trial;
  if (flight.error) {
    fail_by_error(flight, false);
    return;
  }
  if (trial.is_correct()) rate(trial, flight.cost);
  if (trial.is_correct()) enter_race(trial);
  TrialWorkRef work = std::move(flight.work);
  keep_work(land(flight), std::move(work));
}

/// For racing: what the best sample so far is.
void Session::Engine::enter_race(const Trial& trial) {
  const auto is_time = [](double time) { return time > 0; };
  if (trial.times_ms.empty() || !std::all_of(trial.times_ms.begin(), trial.times_ms.end(), is_time))
    return;
  race_.add(trial.index, trial.times_ms, trial.index == options_.default_index);
}

/// A few finalists keep their needs; for others they are made anew on demand.
void Session::Engine::keep_work(const Trial& trial, TrialWorkRef work) {
  if (!trial.is_correct() || race_.find(trial.index) == nullptr) return;
  works_[trial.index] = std::move(work);
  if (works_.size() <= 2 * kMostFinalists) return;
  works_.erase(std::max_element(works_.begin(), works_.end(), [&](const auto& a, const auto& b) {
    return race_.find(a.first)->times.front() < race_.find(b.first)->times.front();
  }));
}

/// Its median, its interval and its score; a failure where it has none that is a number.
void Session::Engine::rate(Trial& trial, std::optional<double> cost) {
  if (!trial.times_ms.empty()) {
    trial.median_ms = median(trial.times_ms);
    const Interval interval = median_interval(trial.times_ms);
    trial.interval_ms = {interval.low, interval.high};
  }
  trial.score = trial.median_ms ? trial.median_ms : cost;
  if (options_.score) options_.score(trial);
  if (trial.is_correct() && (!trial.score || std::isnan(*trial.score))) {
    trial.status = TrialStatus::runtime;
    trial.error = "the objective of this configuration is no number";
  }
  if (!trial.is_correct()) trial.score.reset();
}

/// The trial has its outcome: keeps it, tells it, and those that wait for it.
const Trial& Session::Engine::land(Flight& flight) {
  flight.trial.ended_s = now();
  if (!flight.trial.same_as) gpu_s_ += flight.trial.gpu_s();
  const std::vector<std::uint64_t> followers = flight.followers;
  trials_.push_back(std::make_unique<Trial>(flight.trial));
  const Trial& trial = *trials_.back();
  flights_.erase(trial.number);
  landed_[trial.number] = &trial;
  if (trial.is_correct() && (best_ == nullptr || *trial.score < *best_->score ||
                             (*trial.score == *best_->score && trial.index < best_->index))) {
    best_ = &trial;
  }
  if (options_.record) options_.record(trial);
  for (const std::uint64_t number : followers) {
    const auto follower = flights_.find(number);
    if (follower == flights_.end()) continue;
    adopt(follower->second->trial, trial);
    land(*follower->second);
  }
  return trial;
}

// -- for foreign optimisers --------------------------------------------------------------------

std::optional<Trial> Session::Engine::ask() {
  while (tell_next()) {}
  if (const auto limit = reached_limit(options_.budget, spending())) end(*limit);
  while (may_ask()) {
    const std::optional<std::uint64_t> index = ask_next();
    if (!index) break;
    if (taken_.contains(*index)) continue;
    Flight& flight = take_off(*index);
    if (options_.known.contains(*index)) {
      plan(flight);
      continue;
    }
    flight.stage = Stage::outside;
    return flight.trial;
  }
  return std::nullopt;
}

const Trial& Session::Engine::tell(Trial told) {
  const auto found = flights_.find(told.number);
  if (found == flights_.end() || found->second->stage != Stage::outside) {
    throw InvalidArgument(
        format("trial {} is none that ask() gave, or was told already", told.number));
  }
  Flight& flight = *found->second;
  told.index = flight.trial.index;
  told.started_s = flight.trial.started_s;
  if (told.is_correct()) {
    if (!told.median_ms && !told.times_ms.empty()) told.median_ms = median(told.times_ms);
    if (!told.score) told.score = told.median_ms;
    if (!told.score || std::isnan(*told.score))
      throw InvalidArgument(format("trial {} is told to be correct without a time", told.number));
  } else {
    told.score.reset();
  }
  flight.trial = std::move(told);
  return land(flight);
}

// -- the end -----------------------------------------------------------------------------------

/// What the trial left, or made anew for one of an earlier session.
TrialWorkRef Session::Engine::finalist_work(std::uint64_t index, const WaitLimits& limits) {
  TrialWorkRef& work = works_[index];
  if (work == nullptr) {
    TrialWorkRef made = backend_.plan(index);
    backend_.compile(*made, limits);
    backend_.bind(*made);
    work = std::move(made);
  }
  return work;
}

std::optional<double> Session::Engine::sample_finalist(std::uint64_t index) {
  WaitLimits limits;
  limits.stop = run_stop_;
  limits = limits.within(
      std::chrono::milliseconds(static_cast<std::int64_t>(1000 * options_.run_timeout_s)));
  try {
    check_wait(limits, "the tuning session");
    const TrialWorkRef work = finalist_work(index, limits);
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

void Session::Engine::sort_by_rank(std::vector<Finalist>& found) {
  std::sort(found.begin(), found.end(), [](const Finalist& a, const Finalist& b) {
    return std::pair(a.rank, a.trial->index) < std::pair(b.rank, b.trial->index);
  });
}

/// Who may take part in the final comparison, the fastest first.
std::vector<Session::Engine::Finalist> Session::Engine::ranked() const {
  std::vector<Finalist> found;
  for (const auto& trial : trials_) {
    if (trial->is_correct() && !trial->same_as && race_.find(trial->index) != nullptr)
      found.push_back({trial.get(), trial->times_ms, *trial->median_ms});
  }
  sort_by_rank(found);
  return found;
}

/// A candidate throttled during all its samples looks slow. Those not far behind get one more
/// sample each, and another when the clock may be a different one.
void Session::Engine::look_again(std::vector<Finalist>& found, double seconds) {
  const double until = now() + seconds;
  const double limit = kThrottled * found.front().rank;
  const auto end = std::find_if(found.begin(), found.end(),
                                [&](const Finalist& one) { return one.rank > limit; });
  for (int pass = 0; pass < 2; ++pass) {
    for (auto one = found.begin(); one != end && now() < until; ++one) {
      const std::optional<double> time = sample_finalist(one->trial->index);
      if (!time || !(*time > 0)) continue;
      one->times.push_back(*time);
      one->rank = std::min(one->rank, *time);
    }
  }
  sort_by_rank(found);
}

/// The fastest ones, and the default; fewer where `seconds` do not suffice for many.
std::vector<Session::Engine::Finalist> Session::Engine::finalists(double seconds) {
  std::vector<Finalist> found = ranked();
  if (found.empty()) return found;
  const auto places = static_cast<std::size_t>(std::clamp(
      seconds / (kLeastRounds * sample_s(*found.front().trial)), 2.0, double{kMostFinalists}));
  if (found.size() <= places) return found;
  look_again(found, kLookPart * seconds);
  found.erase(std::remove_if(
                  found.begin() + static_cast<std::ptrdiff_t>(places), found.end(),
                  [&](const Finalist& one) { return one.trial->index != options_.default_index; }),
              found.end());
  return found;
}

void Session::Engine::compare_finalists() {
  const double seconds = std::max(kLeastFinal, kFinalPart * now());
  const std::vector<Finalist> candidates = finalists(seconds);
  if (candidates.empty()) return;
  RacePlan plan;
  const double rounds =
      seconds / 2 / (double(candidates.size()) * sample_s(*candidates.front().trial));
  plan.max_rounds =
      static_cast<int>(std::clamp(rounds, double(plan.min_rounds), double(plan.max_rounds)));
  plan.max_final_rounds = static_cast<int>(
      std::clamp(rounds, double(plan.min_final_rounds), double(plan.max_final_rounds)));
  Race race(plan);
  for (const Finalist& one : candidates)
    race.add(one.trial->index, one.times, one.trial->index == options_.default_index);
  const auto compared = race.finish([this](std::uint64_t index) { return sample_finalist(index); });
  if (!compared) return;
  result_->best = compared->winner;
  result_->median_ms = result_->score = compared->median;
  result_->interval_ms = {compared->interval.low, compared->interval.high};
  result_->ties = compared->ties;
  result_->noise = compared->noise_floor;
  if (!options_.default_index) return;
  if (const RaceStanding* const standing = compared->standing(*options_.default_index))
    result_->default_ms = result_->default_score = standing->median;
}

SessionResult Session::Engine::result() const {
  if (result_) return *result_;
  SessionResult result;
  result.reason = end_.value_or(SessionEnd::cancelled);
  result.evaluations = trials_.size();
  result.seconds = now();
  if (best_ == nullptr) return result;
  result.best = best_->index;
  result.median_ms = best_->median_ms;
  result.interval_ms = best_->interval_ms;
  result.score = best_->score;
  for (const auto& trial : trials_) {
    if (trial->score == best_->score) result.ties.push_back(trial->index);
    if (trial->index != options_.default_index) continue;
    result.default_ms = trial->median_ms;
    result.default_score = trial->score;
  }
  std::sort(result.ties.begin(), result.ties.end());
  return result;
}

const SessionResult& Session::Engine::finish() {
  if (result_) return *result_;
  if (!end_) give_up();
  result_ = result();
  // A score of the caller's own is taken as it was measured.
  if (!options_.score && backend_.has_clock() && end_ != SessionEnd::cancelled) {
    compare_finalists();
    result_->seconds = now();
  }
  return *result_;
}

// -- Session -----------------------------------------------------------------------------------

Session::Session(const Space& space, TrialBackend& backend, SessionOptions options)
    : engine_(std::make_unique<Engine>(space, backend, std::move(options))) {}
Session::~Session() = default;

const Trial* Session::next() { return engine_->next(); }
const SessionResult& Session::finish() { return engine_->finish(); }
const SessionResult& Session::run() {
  while (next() != nullptr) {}
  return finish();
}
void Session::stop() noexcept { engine_->stop(); }
std::optional<Trial> Session::ask() { return engine_->ask(); }
const Trial& Session::tell(Trial trial) { return engine_->tell(std::move(trial)); }
const std::vector<std::unique_ptr<Trial>>& Session::trials() const { return engine_->trials(); }
const Trial* Session::best() const { return engine_->best(); }
SessionResult Session::result() const { return engine_->result(); }

}  // namespace kernwright
