// The ends of trials: outcomes, results of foreign optimisers, and the result of all.
#include "base/errors.h"
#include "base/format.h"
#include "tune/measure/statistics.h"
#include "tune/session/session_engine.h"
#include "tune/session/trial_error.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace kernwright {

void Session::Engine::handle(std::uint64_t event) {
  const auto found = pending_.find(event);
  if (found == pending_.end()) return;
  PendingTrial& pending = *found->second;
  const Stage stage = std::exchange(pending.stage, Stage::ended);
  report(stage == Stage::running, false, pending);
  if (stage == Stage::running) {
    ran(pending);
  } else {
    compiled(pending);
  }
}

void Session::Engine::fail(PendingTrial& pending, TrialStatus status, std::string message) {
  pending.trial.status = status;
  pending.trial.error = std::move(message);
  settle(pending);
}

/// At the end of a session, the trial is no longer useful, and neither are those waiting for it.
void Session::Engine::fail_by_error(PendingTrial& pending, bool compiling) {
  if (is_cancelled(pending.error)) {
    if (!pending.is_late) {
      for (const std::uint64_t number : pending.followers) pending_.erase(number);
      pending_.erase(pending.trial.number);
      return;
    }
    const double took = pending.trial.compile_ended_s - pending.trial.compile_started_s;
    const std::string expected =
        pending.expected_s ? format(", {:.3g} s were expected", *pending.expected_s) : "";
    fail(pending, TrialStatus::timeout,
         format("the compile was given up after {:.3g} s{}", took, expected));
    return;
  }
  const auto failure = trial_failure(
      pending.error, compiling ? TrialStage::compile : TrialStage::run, backend_.is_isolated());
  if (!failure) std::rethrow_exception(pending.error);
  fail(pending, failure->status, failure->message);
}

void Session::Engine::compiled(PendingTrial& pending) {
  if (pending.error) {
    fail_by_error(pending, true);
    return;
  }
  Trial& trial = pending.trial;
  trial.code = pending.compiled.code;
  trial.compile_s = pending.compiled.compile_s;
  if (trial.compile_s > 0) estimate_.learn(pending.choices, trial.compile_s);
  if (end_) {  // it will not be run
    pending_.erase(trial.number);
    return;
  }
  try {
    backend_.bind(*pending.work);
  } catch (...) {
    const auto failure = trial_failure(std::current_exception(), TrialStage::run);
    if (!failure) throw;
    fail(pending, failure->status, failure->message);
    return;
  }
  pending.stage = Stage::compiled;
  if (pending.compiled.same_key.empty()) return;
  const auto [leader, is_first] = leaders_.try_emplace(pending.compiled.same_key, trial.number);
  if (is_first) return;
  if (const Trial* const ended = ended_.find(leader->second)) {
    trial.adopt(*ended);
    settle(pending);
  } else {
    pending.stage = Stage::follows;
    pending_.at(leader->second)->followers.push_back(trial.number);
  }
}

void Session::Engine::ran(PendingTrial& pending) {
  Trial& trial = pending.trial;
  if (pending.error) {
    fail_by_error(pending, false);
    return;
  }
  if (trial.is_correct()) rate(trial, pending.cost);
  if (trial.is_correct()) final_.enter(trial);
  TrialWorkRef work = std::move(pending.work);
  final_.keep(settle(pending), std::move(work));
}

/// Its median, its interval and its score; a failure if the score is not a number.
void Session::Engine::rate(Trial& trial, std::optional<double> cost) {
  if (!trial.times_ms.empty()) {
    trial.median_ms = median(trial.times_ms);
    const Interval interval = median_interval(trial.times_ms);
    trial.interval_ms = {interval.low, interval.high};
  }
  trial.score = trial.median_ms ? trial.median_ms : cost;
  if (options_.score) options_.score(trial);
  if (trial.is_correct() && (!trial.score || !std::isfinite(*trial.score))) {
    trial.status = TrialStatus::runtime;
    trial.error = "the objective of this configuration is no finite number";
  }
  if (!trial.is_correct()) trial.score.reset();
}

/// Keeps and tells the trial's outcome, and settles the trials waiting for it.
const Trial& Session::Engine::settle(PendingTrial& pending) {
  pending.trial.ended_s = now();
  const std::vector<std::uint64_t> followers = pending.followers;
  const Trial& trial = ended_.add(pending.trial);
  pending_.erase(trial.number);
  if (options_.record) options_.record(trial);
  for (const std::uint64_t number : followers) {
    const auto follower = pending_.find(number);
    if (follower == pending_.end()) continue;
    follower->second->trial.adopt(trial);
    settle(*follower->second);
  }
  return trial;
}

// -- for foreign optimisers --------------------------------------------------------------------

std::optional<Trial> Session::Engine::ask() {
  final_.leave_out();  // times measured elsewhere are taken as they are
  while (tell_next()) {}
  if (const auto limit = reached_limit(options_.budget, spending())) end(*limit);
  while (may_ask()) {
    const std::optional<std::uint64_t> index = ask_next();
    if (!index) break;
    if (taken_.contains(*index)) continue;
    PendingTrial& pending = begin(*index);
    if (options_.known.contains(*index)) {
      plan(pending);
      continue;
    }
    pending.stage = Stage::outside;
    take_over_best();
    return pending.trial;
  }
  return std::nullopt;
}

const Trial& Session::Engine::tell(Trial told) {
  const auto found = pending_.find(told.number);
  if (found == pending_.end() || found->second->stage != Stage::outside) {
    throw InvalidArgument(
        format("trial {} did not come from ask(), or was told already", told.number));
  }
  PendingTrial& pending = *found->second;
  told.index = pending.trial.index;
  told.started_s = pending.trial.started_s;
  if (told.is_correct()) {
    if (!told.median_ms && !told.times_ms.empty()) told.median_ms = median(told.times_ms);
    if (!told.score) told.score = told.median_ms;
    if (!told.score || !std::isfinite(*told.score))
      throw InvalidArgument(format("trial {} is told as correct but without a time", told.number));
  } else {
    told.score.reset();
  }
  pending.trial = std::move(told);
  return settle(pending);
}

// -- the end -----------------------------------------------------------------------------------

SessionResult Session::Engine::result() const {
  if (result_) return *result_;
  SessionResult result = ended_.result(options_.default_index);
  result.reason = end_.value_or(SessionEnd::cancelled);
  result.seconds = now();
  return result;
}

void Session::Engine::take(const RaceResult& compared) {
  result_->best = compared.winner;
  result_->median_ms = result_->score = compared.median;
  result_->interval_ms = {compared.interval.low, compared.interval.high};
  result_->ties = compared.ties;
  result_->noise = compared.noise_floor;
  if (!options_.default_index) return;
  if (const RaceStanding* const standing = compared.standing(*options_.default_index))
    result_->default_ms = result_->default_score = standing->median;
}

const SessionResult& Session::Engine::finish() {
  if (result_) return *result_;
  if (!end_) give_up();
  result_ = result();
  // A score of the caller's own is taken as it was measured.
  if (!options_.score && backend_.has_clock() && end_ != SessionEnd::cancelled) {
    if (const auto compared = final_.run(ended_.all())) take(*compared);
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
