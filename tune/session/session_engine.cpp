// Asks ahead, compiles the longest first, runs compiled trials, and tells results in order.
#include "tune/session/session_engine.h"

#include "base/errors.h"
#include "base/format.h"
#include "tune/session/trial_error.h"

#include <algorithm>
#include <iterator>
#include <utility>

namespace kernwright {
namespace {

/// If answers change no question, so many are asked ahead that a long compile delays none.
constexpr unsigned kFixedWindow = 256;
// A trial is stuck if it is at work for so many seconds, and for so many times the usual time of
// compiles.
constexpr double kStuck = 1.0, kStuckTimes = 3;
constexpr unsigned kBacklog = 2;  // most trials ready to run for each device

unsigned lanes(unsigned wanted, const char* what) {
  if (wanted == 0) throw InvalidArgument(format("a backend without lanes to {} on", what));
  return wanted;
}

}  // namespace

Session::Engine::Engine(const Space& space, TrialBackend& backend, SessionOptions options)
    : space_(space),
      backend_(backend),
      options_(std::move(options)),
      questions_(space, options_),
      estimate_(space),
      runner_(backend, options_, clock_, run_stop_),
      final_(backend, options_, clock_, run_stop_),
      compile_lanes_(lanes(backend.compile_lanes(), "compile"), events_),
      device_lanes_(lanes(backend.device_lanes(), "run"), events_) {
  if (options_.window != 0) return;
  options_.window = std::max(8U, 2 * backend.compile_lanes() + 2 * backend.device_lanes());
  if (questions_.has_fixed_order()) options_.window = std::max(options_.window, kFixedWindow);
}

Session::Engine::~Engine() {
  for (const auto& entry : pending_) {
    if (entry.second->stop) entry.second->stop->store(true);
  }
  run_stop_->store(true);
}

Spending Session::Engine::spending() const {
  Spending spent{.seconds = now(), .evaluations = asked_, .gpu_seconds = ended_.gpu_s()};
  if (const Trial* const best = ended_.best()) spent.best = best->score;
  return spent;
}

// -- asking ------------------------------------------------------------------------------------

bool Session::Engine::may_ask() const {
  if (end_ || questions_.is_exhausted()) return false;
  return !options_.budget.evaluations || asked_ < *options_.budget.evaluations;
}

/// The next question. A configuration already tried during a wait of the search needs no trial of
/// its own.
std::optional<std::uint64_t> Session::Engine::ask_next() {
  const std::optional<std::uint64_t> index = questions_.ask();
  if (!index) return std::nullopt;
  const auto taken = taken_.find(*index);
  questions_.expect(taken == taken_.end() ? asked_ : taken->second);
  return index;
}

PendingTrial& Session::Engine::begin(std::uint64_t index) {
  auto pending = std::make_unique<PendingTrial>();
  pending->trial.number = asked_;
  pending->trial.index = index;
  pending->trial.started_s = now();
  pending->choices = space_.configurations().at(index);
  taken_.emplace(index, asked_);
  return *(pending_[asked_++] = std::move(pending));
}

void Session::Engine::plan(PendingTrial& pending) {
  Trial& trial = pending.trial;
  if (const auto known = options_.known.find(trial.index); known != options_.known.end()) {
    const double moment = trial.started_s;
    const std::uint64_t number = trial.number;
    const bool is_extra = trial.is_extra;
    trial = known->second;
    trial.number = number;
    trial.is_extra = is_extra;
    trial.index = known->first;
    trial.started_s = trial.compile_started_s = trial.compile_ended_s = moment;
    trial.is_resumed = true;
    trial.same_as.reset();
    if (trial.is_correct()) final_.enter(trial);
    settle(pending);
    return;
  }
  try {
    pending.work = backend_.plan(trial.index);
  } catch (...) {
    const auto failure = trial_failure(std::current_exception(), TrialStage::plan);
    if (!failure) throw;
    fail(pending, failure->status, failure->message);
    return;
  }
}

/// The answer to the oldest question, if it is there.
bool Session::Engine::tell_next() {
  if (questions_.open() == 0) return false;
  const Trial* const answer = ended_.find(questions_.oldest());
  if (answer == nullptr) return false;
  questions_.answer_oldest(*answer);
  return true;
}

/// The best of earlier sessions, behind the first trial. It is one of the budget's.
void Session::Engine::take_over_best() {
  if (!may_ask()) return;
  const std::optional<std::uint64_t> best = questions_.take_best_known();
  if (best && !taken_.contains(*best)) plan(begin(*best));
}

/// One question for each answer, so that their sequence does not depend on the trials' times.
void Session::Engine::fill() {
  do {
    while (may_ask() && questions_.open() < options_.window) {
      const std::optional<std::uint64_t> index = ask_next();
      if (index && !taken_.contains(*index)) plan(begin(*index));
      take_over_best();
    }
  } while (tell_next());
}

/// Whether the trial is at work for much longer than others were.
bool Session::Engine::is_stuck(std::uint64_t number) const {
  const auto found = pending_.find(number);
  if (found == pending_.end()) return false;
  const PendingTrial* pending = found->second.get();
  if (pending->stage == Stage::follows) {
    const auto leader = pending_.find(leaders_.at(pending->compiled.same_key));
    if (leader != pending_.end()) pending = leader->second.get();
  }
  if (pending->stage != Stage::compiling && pending->stage != Stage::running) return false;
  return now() - pending->dispatched_s > std::max(kStuck, kStuckTimes * estimate_.typical());
}

/// While a stuck trial delays the next question, idle lanes try the scout's proposals. The search
/// gets such a result when it asks for the same one, so its questions do not depend on time.
void Session::Engine::fill_gaps() {
  if (!may_ask() || questions_.open() < options_.window || !is_stuck(questions_.oldest())) return;
  const auto count = [this](Stage stage) {
    return static_cast<unsigned>(
        std::count_if(pending_.begin(), pending_.end(),
                      [stage](const auto& entry) { return entry.second->stage == stage; }));
  };
  if (count(Stage::compiled) >= kBacklog * backend_.device_lanes()) return;
  const unsigned idle = compile_lanes_.idle();
  for (unsigned waiting = count(Stage::queued); waiting < idle && may_ask(); ++waiting) {
    if (!scout_) scout_.emplace(space_, options_);
    const std::optional<std::uint64_t> index =
        scout_->next(ended_.all(), [this](std::uint64_t found) { return taken_.contains(found); });
    if (!index) return;
    PendingTrial& pending = begin(*index);
    pending.trial.is_extra = true;
    plan(pending);
  }
}

// -- lanes -------------------------------------------------------------------------------------

void Session::Engine::report(bool is_gpu, bool begins, const PendingTrial& pending) {
  if (options_.lane_event) options_.lane_event({is_gpu, begins, pending.trial.number, now()});
}

void Session::Engine::dispatch() {
  for (unsigned idle = compile_lanes_.idle(); idle > 0; --idle) {
    PendingTrial* longest = nullptr;
    for (const auto& [number, pending] : pending_) {
      if (pending->stage != Stage::queued) continue;
      pending->expected_s = estimate_.predict(pending->choices);
      if (longest == nullptr || pending->expected_s > longest->expected_s) longest = pending.get();
    }
    if (longest == nullptr) break;
    start_compile(*longest);
  }
  for (unsigned idle = device_lanes_.idle(); idle > 0; --idle) {
    const auto ready = std::find_if(pending_.begin(), pending_.end(), [](const auto& entry) {
      return entry.second->stage == Stage::compiled;
    });
    if (ready == pending_.end()) break;
    start_run(*ready->second);
  }
}

void Session::Engine::start_compile(PendingTrial& pending) {
  pending.stage = Stage::compiling;
  pending.stop = std::make_shared<std::atomic<bool>>(false);
  pending.dispatched_s = now();
  report(false, true, pending);
  compile_lanes_.start(pending.trial.number,
                       [this, &pending](unsigned) { runner_.compile(pending); });
}

void Session::Engine::start_run(PendingTrial& pending) {
  pending.stage = Stage::running;
  pending.dispatched_s = now();
  report(true, true, pending);
  // If the score is something other than time, slow ones may be good.
  const std::optional<double> best = options_.score ? std::nullopt : final_.best_sample();
  device_lanes_.start(pending.trial.number,
                      [this, &pending, best](unsigned lane) { runner_.run(pending, lane, best); });
}

void Session::Engine::enforce_deadlines() {
  for (const auto& entry : pending_) {
    PendingTrial& pending = *entry.second;
    if (pending.stage != Stage::compiling || pending.is_late) continue;
    const double limit = estimate_.deadline(pending.choices, options_.compile_deadlines);
    if (now() - pending.dispatched_s < limit) continue;
    pending.is_late = true;
    pending.stop->store(true);
  }
}

// -- ends --------------------------------------------------------------------------------------

/// Whether the trial with the code for other trials is running on a device.
bool Session::Engine::is_running(const std::string& same_key) const {
  const auto leader = pending_.find(leaders_.at(same_key));
  return leader != pending_.end() && leader->second->stage == Stage::running;
}

void Session::Engine::end(SessionEnd reason) {
  if (end_) return;
  end_ = reason;
  for (auto entry = pending_.begin(); entry != pending_.end();) {
    PendingTrial& pending = *entry->second;
    // A trial on a device ends soon, and its result counts.
    if (pending.stage == Stage::compiling) pending.stop->store(true);
    const bool goes = pending.stage == Stage::queued || pending.stage == Stage::compiled ||
                      (pending.stage == Stage::follows && !is_running(pending.compiled.same_key));
    entry = goes ? pending_.erase(entry) : std::next(entry);
  }
}

void Session::Engine::give_up() {
  end(SessionEnd::cancelled);
  run_stop_->store(true);
  const auto works = [this] {
    return std::any_of(pending_.begin(), pending_.end(), [](const auto& entry) {
      return entry.second->stage == Stage::compiling || entry.second->stage == Stage::running;
    });
  };
  for (const std::uint64_t event : std::exchange(arrived_, {})) pending_.erase(event);
  while (works()) {
    for (const std::uint64_t event : events_.wait()) pending_.erase(event);
  }
  pending_.clear();
}

const Trial* Session::Engine::next() {
  try {
    while (true) {
      if (const Trial* const trial = ended_.deliver()) return trial;
      if (is_stopped_.load()) {
        end(SessionEnd::cancelled);
        run_stop_->store(true);
      }
      if (const auto limit = reached_limit(options_.budget, spending())) end(*limit);
      fill();
      fill_gaps();
      if (!end_) dispatch();
      if (!ended_.all_delivered()) continue;
      const bool waits = std::any_of(pending_.begin(), pending_.end(), [](const auto& entry) {
        return entry.second->stage != Stage::outside;
      });
      if (!waits) break;
      check_wait({}, "the tuning session");
      arrived_ = events_.wait();
      std::reverse(arrived_.begin(), arrived_.end());
      while (!arrived_.empty()) {
        const std::uint64_t event = arrived_.back();
        arrived_.pop_back();
        handle(event);
      }
      enforce_deadlines();
    }
  } catch (...) {
    give_up();
    throw;
  }
  if (!end_) end_ = questions_.is_exhausted() ? SessionEnd::complete : SessionEnd::budget;
  // Trials dropped at the end were not tried.
  if (end_ == SessionEnd::budget && ended_.all().size() == space_.size())
    end_ = SessionEnd::complete;
  return nullptr;
}

}  // namespace kernwright
