// Sessions with a trial that is stuck, budgets that drop trials, and fresh sessions over noise.
#include "tune/random.h"
#include "tune/session/session.h"
#include "unit/tune/session/scripted_backend.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <set>
#include <vector>

using namespace kernwright;

namespace {

Space numbers_to(std::int64_t values) {
  Space space;
  std::vector<Value> all;
  for (std::int64_t i = 0; i < values; ++i) all.emplace_back(i);
  space.add("x", all);
  return space;
}

/// The least time at `best`, each compile as long as `compile_s`.
std::map<std::uint64_t, Script> basin(std::uint64_t values, std::uint64_t best, double compile_s) {
  std::map<std::uint64_t, Script> scripts;
  for (std::uint64_t i = 0; i < values; ++i) {
    const double distance = std::abs(double(i) - double(best));
    scripts[i].time_ms = 1 + distance;
    scripts[i].compile_s = compile_s;
  }
  return scripts;
}

/// A device that drifts by some percent, is throttled now and then, and has spikes.
class Noise {
 public:
  explicit Noise(std::uint64_t seed) : random_(seed) {}

  double operator()() {
    double normal = -6;
    for (int i = 0; i < 12; ++i) normal += random_.uniform();
    drift_ += 0.001 * (random_.uniform() - 0.5);
    if (throttled_for_ == 0 && random_.uniform() < 0.002) throttled_for_ = 40;
    if (throttled_for_ > 0) --throttled_for_;
    double factor = std::exp(0.005 * normal + drift_);
    if (throttled_for_ > 0) factor *= 1.12;
    return random_.uniform() < 0.02 ? factor * 1.5 : factor;
  }

 private:
  Random random_;
  double drift_ = 0;
  int throttled_for_ = 0;
};

bool are_tied(const SessionResult& a, const SessionResult& b) {
  return std::find(a.ties.begin(), a.ties.end(), b.best) != a.ties.end() ||
         std::find(b.ties.begin(), b.ties.end(), a.best) != b.ties.end();
}

}  // namespace

TEST_CASE("session: a stuck compile idles neither the other lanes nor the device") {
  const Space space = numbers_to(4000);
  auto scripts = basin(4000, 1234, 0.005);
  scripts[7].compile_s = 600;
  ScriptedBackend backend(scripts);
  backend.compiles = 2;
  SessionOptions options;
  options.strategy = "portfolio";
  options.default_index = 7;
  options.budget.seconds = 3;
  Session session(space, backend, options);
  CHECK(session.run().reason == SessionEnd::budget);
  // It counts as stuck after a second, during which the window is worked off.
  std::vector<double> ends;
  for (const auto& trial : session.trials()) ends.push_back(trial->ended_s);
  REQUIRE(ends.size() > 40);
  double gap = 0;
  for (std::size_t i = 1; i < ends.size(); ++i) gap = std::max(gap, ends[i] - ends[i - 1]);
  CHECK(gap < 1.8);
  CHECK(std::count_if(ends.begin(), ends.end(), [](double end) { return end > 1.5; }) > 20);
  CHECK(std::any_of(session.trials().begin(), session.trials().end(),
                    [](const auto& trial) { return trial->is_extra; }));
}

TEST_CASE("session: with a stuck trial the search asks what it asks without") {
  const Space space = numbers_to(300);
  struct Asked {
    std::vector<std::uint64_t> by_search;
    std::set<std::uint64_t> extra;
  };
  const auto run = [&](double compile_s, double run_s) {
    auto scripts = basin(300, 211, 0.008);
    scripts[7].compile_s = compile_s;
    scripts[7].run_s = run_s;
    ScriptedBackend backend(scripts);
    backend.devices = 2;
    SessionOptions options;
    options.strategy = "portfolio";
    options.default_index = 7;
    options.seed = 3;
    options.budget.evaluations = 140;
    Session session(space, backend, options);
    session.run();
    std::map<std::uint64_t, const Trial*> by_number;
    for (const auto& trial : session.trials()) by_number[trial->number] = trial.get();
    CHECK(by_number.size() == 140);
    Asked asked;
    for (const auto& [number, trial] : by_number) {
      if (trial->is_extra) {
        asked.extra.insert(trial->index);
      } else {
        asked.by_search.push_back(trial->index);
      }
    }
    return asked;
  };
  const Asked smooth = run(0.008, 0);
  for (const Asked& held : {run(1.3, 0), run(0.008, 1.3)}) {
    CHECK(held.extra.size() > 10);
    std::vector<std::uint64_t> expected;
    for (const std::uint64_t index : smooth.by_search)
      if (!held.extra.contains(index)) expected.push_back(index);
    const std::size_t both = std::min(expected.size(), held.by_search.size());
    CHECK(both > 40);
    CHECK(std::equal(expected.begin(), expected.begin() + std::ptrdiff_t(both),
                     held.by_search.begin()));
  }
}

TEST_CASE("session: a compile that is stuck among the first ones has a deadline by the others") {
  const Space space = numbers_to(100);
  auto scripts = basin(100, 50, 0.002);
  scripts[7].compile_s = 600;
  ScriptedBackend backend(scripts);
  SessionOptions options;
  options.strategy = "portfolio";
  options.default_index = 7;
  options.compile_deadlines = {.factor = 8, .floor_s = 0.1, .first_s = 500};
  Session session(space, backend, options);
  const SessionResult result = session.run();
  CHECK(result.reason == SessionEnd::complete);
  CHECK(result.evaluations == 100);
  CHECK(result.best == 50);
  CHECK(result.seconds < 60);
}

TEST_CASE("session: a budget that drops trials does not end it as complete") {
  const Space space = numbers_to(6);
  auto scripts = basin(6, 3, 0.001);
  for (auto& [index, script] : scripts) script.run_s = 0.002;
  ScriptedBackend backend(scripts);
  SessionOptions options;
  options.budget.gpu_seconds = 1e-7;
  Session session(space, backend, options);
  const SessionResult result = session.run();
  CHECK(result.evaluations < 6);
  CHECK(result.reason == SessionEnd::budget);
}

TEST_CASE("session: 20 fresh ones over noise: small regret, no flip outside of the ties") {
  const Space space = numbers_to(150);
  std::map<std::uint64_t, Script> scripts;
  Random random(11);
  double least = 1e9;
  for (std::uint64_t i = 0; i < 150; ++i) {
    const double u = random.uniform();
    scripts[i].time_ms = 1 + 3 * u * u;
    least = std::min(least, scripts[i].time_ms);
  }
  std::vector<SessionResult> results;
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    ScriptedBackend backend(scripts);
    backend.noise = Noise(seed);
    SessionOptions options;
    options.seed = seed;
    Session session(space, backend, options);
    results.push_back(session.run());
    REQUIRE(results.back().best.has_value());
    CAPTURE(seed);
    CHECK(scripts[*results.back().best].time_ms / least <= 1.015);
  }
  for (const SessionResult& a : results)
    for (const SessionResult& b : results) CHECK(are_tied(a, b));
}
