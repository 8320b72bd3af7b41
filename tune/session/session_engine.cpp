// Asks ahead, compiles the longest first, runs what is compiled, and tells in order.
#include "tune/session/session_engine.h"

#include "base/errors.h"
#include "base/format.h"
#include "tune/session/trial_error.h"
#include "worker/worker.h"

#include <algorithm>
#include <limits>
#include <utility>

namespace kernwright {
namespace {

constexpr std::uint64_t kProposeEvery = 8;  // trials between two calls of `propose`
/// Where answers change no question, as many are asked ahead that a long compile keeps none back.
constexpr unsigned kFixedWindow = 256;
// Of the best sample: further samples tell nothing new; nor would a warmer clock, from there on.
constexpr double kSlow = 1.15, kFar = 1.5;
// A trial is stuck if it is at work for so many seconds, and for so many times the usual time of
// compiles.
constexpr double kStuck = 1.0, kStuckTimes = 3;
constexpr unsigned kBacklog = 2;  // trials for each device that are ready to run; more is no use

std::string strategy_name(const Space& space, const SessionOptions& options) {
  if (!options.strategy.empty()) return options.strategy;
  const Budget& budget = options.budget;
  const bool is_open = !budget.seconds && !budget.gpu_seconds && !budget.target;
  const bool fits = budget.evaluations ? *budget.evaluations >= space.size() : is_open;
  return std::string(fits ? "brute_force" : strategy_names().front());
}

bool has_fixed_order(const Space& space, const SessionOptions& options) {
  const std::string name = strategy_name(space, options);
  return !options.propose && (name == "brute_force" || name == "random");
}

std::unique_ptr<Strategy> strategy_of(const Space& space, const SessionOptions& options) {
  options.budget.validate();
  StrategyOptions wanted{.seed = options.seed};
  if (options.default_index) wanted.initial.push_back(*options.default_index);
  for (const std::uint64_t index : options.initial) {
    if (index != options.default_index) wanted.initial.push_back(index);
  }
  const std::uint64_t size = space.size();
  for (const std::uint64_t index : wanted.initial) {
    if (index >= size)
      throw InvalidArgument(format("configuration {} of a space that has {}", index, size));
  }
  return make_strategy(strategy_name(space, options), space, wanted);
}

unsigned lanes(unsigned wanted, const char* what) {
  if (wanted == 0) throw InvalidArgument(format("a backend without lanes to {} on", what));
  return wanted;
}

}  // namespace

Session::Engine::Engine(const Space& space, TrialBackend& backend, SessionOptions options)
    : space_(space),
      backend_(backend),
      options_(std::move(options)),
      strategy_(strategy_of(space, options_)),
      estimate_(space),
      compile_lanes_(lanes(backend.compile_lanes(), "compile"), events_),
      device_lanes_(lanes(backend.device_lanes(), "run"), events_) {
  if (options_.window != 0) return;
  options_.window = std::max(8U, 2 * backend.compile_lanes() + 2 * backend.device_lanes());
  if (has_fixed_order(space, options_)) options_.window = std::max(options_.window, kFixedWindow);
}

Session::Engine::~Engine() {
  for (const auto& entry : flights_) {
    if (entry.second->stop) entry.second->stop->store(true);
  }
  run_stop_->store(true);
}

double Session::Engine::now() const {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start_).count();
}

Spending Session::Engine::spending() const {
  Spending spent{.seconds = now(), .evaluations = asked_, .gpu_seconds = gpu_s_};
  if (best_ != nullptr) spent.best = best_->score;
  return spent;
}

// -- asking ------------------------------------------------------------------------------------

bool Session::Engine::may_ask() const {
  if (end_ || is_exhausted_) return false;
  return !options_.budget.evaluations || asked_ < *options_.budget.evaluations;
}

void Session::Engine::ask_for_proposals() {
  if (!options_.propose || told_ < propose_after_) return;
  propose_after_ = told_ + kProposeEvery;
  for (const std::uint64_t index : options_.propose()) {
    if (index < space_.size() && !wanted_.contains(index)) options_.initial.push_back(index);
  }
}

std::optional<std::uint64_t> Session::Engine::next_index() {
  ask_for_proposals();
  // The strategy asks for the first ones by itself; these are the ones that came later.
  while (options_.propose && !options_.initial.empty()) {
    const std::uint64_t index = options_.initial.front();
    options_.initial.erase(options_.initial.begin());
    if (!wanted_.contains(index)) return index;
  }
  while (true) {
    const std::vector<std::uint64_t> asked = strategy_->ask(1);
    if (asked.empty()) return std::nullopt;
    if (!wanted_.contains(asked.front())) return asked.front();
  }
}

/// The next question; what was tried while the search had to wait is one without a trial of its
/// own.
std::optional<std::uint64_t> Session::Engine::ask_next() {
  const std::optional<std::uint64_t> index = next_index();
  if (!index) {
    is_exhausted_ = true;
    return std::nullopt;
  }
  wanted_.insert(*index);
  const auto taken = taken_.find(*index);
  questions_.push_back(taken == taken_.end() ? asked_ : taken->second);
  return index;
}

Session::Engine::Flight& Session::Engine::take_off(std::uint64_t index) {
  auto flight = std::make_unique<Flight>();
  flight->trial.number = asked_;
  flight->trial.index = index;
  flight->trial.started_s = now();
  flight->choices = space_.configurations().at(index);
  taken_.emplace(index, asked_);
  return *(flights_[asked_++] = std::move(flight));
}

void Session::Engine::plan(Flight& flight) {
  Trial& trial = flight.trial;
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
    if (trial.is_correct()) enter_race(trial);
    land(flight);
    return;
  }
  try {
    flight.work = backend_.plan(trial.index);
  } catch (...) {
    const auto failure = trial_failure(std::current_exception(), TrialStage::plan);
    if (!failure) throw;
    fail(flight, failure->status, failure->message);
    return;
  }
}

/// The answer to the oldest question, if it is there.
bool Session::Engine::tell_next() {
  if (questions_.empty()) return false;
  const auto landed = landed_.find(questions_.front());
  if (landed == landed_.end()) return false;
  strategy_->tell(landed->second->index, landed->second->score);
  questions_.pop_front();
  ++told_;
  return true;
}

/// One question for each answer, so that their sequence does not depend on how long trials take.
void Session::Engine::fill() {
  do {
    while (may_ask() && questions_.size() < options_.window) {
      const std::optional<std::uint64_t> index = ask_next();
      if (index && !taken_.contains(*index)) plan(take_off(*index));
    }
  } while (tell_next());
}

/// Whether the trial is at work for much longer than others were.
bool Session::Engine::is_stuck(std::uint64_t number) const {
  const auto found = flights_.find(number);
  if (found == flights_.end()) return false;
  const Flight* flight = found->second.get();
  if (flight->stage == Stage::follows) {
    const auto leader = flights_.find(leaders_.at(flight->compiled.same_key));
    if (leader != flights_.end()) flight = leader->second.get();
  }
  if (flight->stage != Stage::compiling && flight->stage != Stage::running) return false;
  return now() - flight->dispatched_s > std::max(kStuck, kStuckTimes * estimate_.typical());
}

/// The next proposal of a second search; it hears of every trial at once.
std::optional<std::uint64_t> Session::Engine::scout_index() {
  if (!scout_)
    scout_ = make_strategy(strategy_name(space_, options_), space_, {.seed = ~options_.seed});
  for (; scouted_ < trials_.size(); ++scouted_)
    scout_->tell(trials_[scouted_]->index, trials_[scouted_]->score);
  while (true) {
    const std::vector<std::uint64_t> asked = scout_->ask(1);
    if (asked.empty()) return std::nullopt;
    if (!taken_.contains(asked.front())) return asked.front();
  }
}

/// Where a stuck trial keeps back the next question, idle lanes try the scout's proposals. The
/// search hears of one when it asks for the same, so its questions do not depend on time.
void Session::Engine::fill_gaps() {
  if (!may_ask() || questions_.size() < options_.window || !is_stuck(questions_.front())) return;
  const auto count = [this](Stage stage) {
    return static_cast<unsigned>(
        std::count_if(flights_.begin(), flights_.end(),
                      [stage](const auto& entry) { return entry.second->stage == stage; }));
  };
  if (count(Stage::compiled) >= kBacklog * backend_.device_lanes()) return;
  const unsigned idle = compile_lanes_.idle();
  for (unsigned waiting = count(Stage::queued); waiting < idle && may_ask(); ++waiting) {
    const std::optional<std::uint64_t> index = scout_index();
    if (!index) return;
    Flight& flight = take_off(*index);
    flight.trial.is_extra = true;
    plan(flight);
  }
}

// -- lanes -------------------------------------------------------------------------------------

void Session::Engine::report(bool is_gpu, bool begins, const Flight& flight) {
  if (options_.lane_event) options_.lane_event({is_gpu, begins, flight.trial.number, now()});
}

void Session::Engine::dispatch() {
  for (unsigned idle = compile_lanes_.idle(); idle > 0; --idle) {
    Flight* longest = nullptr;
    for (const auto& [number, flight] : flights_) {
      if (flight->stage != Stage::queued) continue;
      flight->expected_s = estimate_.predict(flight->choices);
      if (longest == nullptr || flight->expected_s > longest->expected_s) longest = flight.get();
    }
    if (longest == nullptr) break;
    start_compile(*longest);
  }
  for (unsigned idle = device_lanes_.idle(); idle > 0; --idle) {
    const auto ready = std::find_if(flights_.begin(), flights_.end(), [](const auto& entry) {
      return entry.second->stage == Stage::compiled;
    });
    if (ready == flights_.end()) break;
    start_run(*ready->second);
  }
}

void Session::Engine::start_compile(Flight& flight) {
  flight.stage = Stage::compiling;
  flight.stop = std::make_shared<std::atomic<bool>>(false);
  flight.dispatched_s = now();
  report(false, true, flight);
  compile_lanes_.start(flight.trial.number, [this, &flight](unsigned) { compile(flight); });
}

void Session::Engine::compile(Flight& flight) {
  flight.trial.compile_started_s = now();
  try {
    WaitLimits limits;
    limits.stop = flight.stop;
    flight.compiled = backend_.compile(*flight.work, limits);
  } catch (...) {
    flight.error = std::current_exception();
  }
  flight.trial.compile_ended_s = now();
}

void Session::Engine::start_run(Flight& flight) {
  flight.stage = Stage::running;
  flight.dispatched_s = now();
  report(true, true, flight);
  // Where something else than time counts, slow ones may be good.
  const std::optional<double> best = options_.score ? std::nullopt : race_.best_sample();
  device_lanes_.start(flight.trial.number, [this, &flight, best](unsigned lane) {
    try {
      try {
        run(flight, lane, best);
      } catch (const WorkerLost&) {  // by a third party, perhaps: what crashes does so again
        flight.trial.times_ms.clear();
        run(flight, lane, best);
      }
    } catch (...) {
      flight.error = std::current_exception();
    }
  });
}

/// A configuration before this one may have cost the device its process.
void Session::Engine::prepare(unsigned lane, const WaitLimits& limits) {
  constexpr std::chrono::seconds kPatience{120};
  try {
    backend_.prepare(lane, limits.within(kPatience));
  } catch (const Timeout& timeout) {
    throw DeviceNotFound(
        format("device {} of the session does not start: {}; look whether another "
               "program keeps it busy",
               lane, timeout.what()));
  }
}

void Session::Engine::run(Flight& flight, unsigned lane, std::optional<double> best_sample) {
  Trial& trial = flight.trial;
  WaitLimits limits;
  limits.stop = run_stop_;
  const auto patience =
      std::chrono::milliseconds(static_cast<std::int64_t>(1000 * options_.run_timeout_s));
  prepare(lane, limits);
  const double began = now();
  const auto spend = [&](double& seconds, double since) { seconds += now() - since; };
  std::optional<std::string> wrong;
  try {
    trial.resources = backend_.load(lane, *flight.work, limits.within(patience));
    wrong = backend_.verify(lane, *flight.work, limits.within(patience));
  } catch (...) {
    spend(trial.verify_s, began);
    throw;
  }
  spend(trial.verify_s, began);
  if (wrong) {
    trial.status = TrialStatus::correctness;
    trial.error = *wrong;
    return;
  }
  const double measured = now();
  const bool is_capped = best_sample && trial.index != options_.default_index;
  const double cap_ms = is_capped ? kFar * *best_sample : 0;
  const auto sample = [&](unsigned count) {
    TrialSamples more = backend_.sample(lane, *flight.work, count, cap_ms, limits.within(patience));
    trial.times_ms.insert(trial.times_ms.end(), more.times_ms.begin(), more.times_ms.end());
    for (const auto& [name, value] : more.metrics) trial.metrics[name] = value;
    flight.cost = more.cost;
  };
  try {
    sample(backend_.has_clock() ? std::min(2U, options_.samples) : 1);
    const bool is_far =
        best_sample && !trial.times_ms.empty() &&
        *std::min_element(trial.times_ms.begin(), trial.times_ms.end()) > kSlow * *best_sample;
    if (backend_.has_clock() && !is_far && options_.samples > 2) sample(options_.samples - 2);
  } catch (...) {
    spend(trial.measure_s, measured);
    throw;
  }
  spend(trial.measure_s, measured);
}

void Session::Engine::enforce_deadlines() {
  for (const auto& entry : flights_) {
    Flight& flight = *entry.second;
    if (flight.stage != Stage::compiling || flight.is_late) continue;
    const double limit = estimate_.deadline(flight.choices, options_.compile_deadlines);
    if (now() - flight.dispatched_s < limit) continue;
    flight.is_late = true;
    flight.stop->store(true);
  }
}

// -- ends --------------------------------------------------------------------------------------

/// Whether the trial is at work on a device whose code others wait for.
bool Session::Engine::is_running(const std::string& same_key) const {
  const auto leader = flights_.find(leaders_.at(same_key));
  return leader != flights_.end() && leader->second->stage == Stage::running;
}

void Session::Engine::end(SessionEnd reason) {
  if (end_) return;
  end_ = reason;
  for (auto entry = flights_.begin(); entry != flights_.end();) {
    Flight& flight = *entry->second;
    // What runs on a device ends soon, and its result counts.
    if (flight.stage == Stage::compiling) flight.stop->store(true);
    const bool goes = flight.stage == Stage::queued || flight.stage == Stage::compiled ||
                      (flight.stage == Stage::follows && !is_running(flight.compiled.same_key));
    entry = goes ? flights_.erase(entry) : std::next(entry);
  }
}

void Session::Engine::give_up() {
  end(SessionEnd::cancelled);
  run_stop_->store(true);
  const auto works = [this] {
    return std::any_of(flights_.begin(), flights_.end(), [](const auto& entry) {
      return entry.second->stage == Stage::compiling || entry.second->stage == Stage::running;
    });
  };
  for (const std::uint64_t event : std::exchange(arrived_, {})) flights_.erase(event);
  while (works()) {
    for (const std::uint64_t event : events_.wait()) flights_.erase(event);
  }
  flights_.clear();
}

const Trial* Session::Engine::next() {
  try {
    while (true) {
      if (delivered_ < trials_.size()) return trials_[delivered_++].get();
      if (is_stopped_.load()) {
        end(SessionEnd::cancelled);
        run_stop_->store(true);
      }
      if (const auto limit = reached_limit(options_.budget, spending())) end(*limit);
      fill();
      fill_gaps();
      if (!end_) dispatch();
      if (delivered_ < trials_.size()) continue;
      const bool waits = std::any_of(flights_.begin(), flights_.end(), [](const auto& entry) {
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
  if (!end_) end_ = is_exhausted_ ? SessionEnd::complete : SessionEnd::budget;
  // Those that the end dropped were not tried.
  if (end_ == SessionEnd::budget && trials_.size() == space_.size()) end_ = SessionEnd::complete;
  return nullptr;
}

}  // namespace kernwright
