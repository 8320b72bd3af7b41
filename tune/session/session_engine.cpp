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

std::optional<std::uint64_t> Session::Engine::next_index() {
  if (options_.propose && told_ >= propose_after_) {
    propose_after_ = told_ + kProposeEvery;
    for (const std::uint64_t index : options_.propose()) {
      if (index < space_.size() && !taken_.contains(index)) options_.initial.push_back(index);
    }
  }
  // The strategy asks for the first ones by itself; these are the ones that came later.
  while (options_.propose && !options_.initial.empty()) {
    const std::uint64_t index = options_.initial.front();
    options_.initial.erase(options_.initial.begin());
    if (!taken_.contains(index)) return index;
  }
  while (true) {
    const std::vector<std::uint64_t> asked = strategy_->ask(1);
    if (asked.empty()) return std::nullopt;
    if (!taken_.contains(asked.front())) return asked.front();
  }
}

Session::Engine::Flight& Session::Engine::take_off(std::uint64_t index) {
  auto flight = std::make_unique<Flight>();
  flight->trial.number = asked_;
  flight->trial.index = index;
  flight->trial.started_s = now();
  flight->choices = space_.configurations().at(index);
  taken_.insert(index);
  return *(flights_[asked_++] = std::move(flight));
}

void Session::Engine::plan(Flight& flight) {
  Trial& trial = flight.trial;
  if (const auto known = options_.known.find(trial.index); known != options_.known.end()) {
    const double moment = trial.started_s;
    const std::uint64_t number = trial.number;
    trial = known->second;
    trial.number = number;
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

/// The next result in the order of numbers, if it is there.
bool Session::Engine::tell_next() {
  const auto first = untold_.begin();
  if (first == untold_.end() || first->first != told_) return false;
  strategy_->tell(first->second.first, first->second.second);
  untold_.erase(first);
  ++told_;
  return true;
}

/// One question for each answer, so that their sequence does not depend on how long trials take.
void Session::Engine::fill() {
  do {
    while (may_ask() && asked_ - told_ < options_.window) {
      const std::optional<std::uint64_t> index = next_index();
      if (!index) {
        is_exhausted_ = true;
        break;
      }
      plan(take_off(*index));
    }
  } while (tell_next());
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
  if (end_ == SessionEnd::budget && taken_.size() == space_.size()) end_ = SessionEnd::complete;
  return nullptr;
}

}  // namespace kernwright
