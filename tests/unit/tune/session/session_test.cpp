// Sessions over a scripted backend: outcomes, budgets, order, cancellation, equal code.
#include "tune/session/session.h"

#include "unit/tune/session/scripted_backend.h"
#include "worker/worker.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <set>
#include <utility>

using namespace kernwright;

namespace {

Space line(std::int64_t values) {
  Space space;
  std::vector<Value> all;
  for (std::int64_t i = 0; i < values; ++i) all.emplace_back(i);
  space.add("x", all);
  return space;
}

/// The least time at `best`.
std::map<std::uint64_t, Script> valley(std::uint64_t values, std::uint64_t best) {
  std::map<std::uint64_t, Script> scripts;
  for (std::uint64_t i = 0; i < values; ++i) {
    const double distance = i > best ? double(i - best) : double(best - i);
    scripts[i].time_ms = 1 + distance;
  }
  return scripts;
}

const Trial& trial_of(const Session& session, std::uint64_t index) {
  for (const auto& trial : session.trials())
    if (trial->index == index) return *trial;
  throw Error(format("configuration {} was not tried", index));
}

template <typename E, typename... Args>
std::function<void()> raises(Args... args) {
  return [=] { throw E(args...); };
}

}  // namespace

TEST_CASE("session: tries the whole space, finds the best, and says so") {
  const Space space = line(20);
  ScriptedBackend backend(valley(20, 13));
  Session session(space, backend, {});
  const SessionResult result = session.run();
  CHECK(session.trials().size() == 20);
  CHECK(result.best == 13);
  CHECK(result.median_ms == 1.0);
  CHECK(result.ties == std::vector<std::uint64_t>{13});
  CHECK(result.reason == SessionEnd::complete);
  CHECK(result.evaluations == 20);
  std::set<std::uint64_t> numbers;
  for (const auto& trial : session.trials()) {
    CHECK(trial->is_correct());
    CHECK(trial->resources.registers == 32);
    CHECK(trial->compile_ended_s >= trial->compile_started_s);
    CHECK(trial->ended_s >= trial->compile_ended_s);
    numbers.insert(trial->number);
  }
  CHECK(numbers.size() == 20);
  CHECK(*numbers.rbegin() == 19);
  CHECK(session.next() == nullptr);
  CHECK(session.run().best == 13);
}

TEST_CASE("session: any outcome is data, and the session goes on") {
  const Space space = line(12);
  auto scripts = valley(12, 0);
  scripts[1].on_compile = raises<CompileError>("no such type", std::vector<Diagnostic>{}, "log",
                                               "text", std::vector<std::string>{});
  scripts[2].on_run = raises<LaunchConfigError>("2048 threads a block");
  scripts[3].on_compile = raises<Timeout>("3 s");
  scripts[4].on_run = raises<Timeout>("the launch took 3 s");
  scripts[5].on_run = raises<DeviceLost>("illegal address", 700, "CUDA_ERROR_ILLEGAL_ADDRESS");
  scripts[6].wrong = "y[3] is 1, not 2";
  scripts[7].on_run = raises<WorkerLost>("the worker was killed");
  scripts[8].on_plan = raises<InvalidArgument>("division by zero");
  scripts[9].on_bind = raises<ArgumentError>("a parameter too many");
  scripts[10].on_compile = raises<std::bad_alloc>();
  scripts[11].time_ms = std::nan("");
  ScriptedBackend backend(scripts);
  Session session(space, backend, {});
  CHECK(session.run().best == 0);
  const std::map<std::uint64_t, TrialStatus> wanted{
      {0, TrialStatus::correct},     {1, TrialStatus::compile},  {2, TrialStatus::constraints},
      {3, TrialStatus::timeout},     {4, TrialStatus::timeout},  {5, TrialStatus::runtime},
      {6, TrialStatus::correctness}, {7, TrialStatus::runtime},  {8, TrialStatus::constraints},
      {9, TrialStatus::runtime},     {10, TrialStatus::compile}, {11, TrialStatus::runtime}};
  CHECK(session.trials().size() == wanted.size());
  for (const auto& [index, status] : wanted) {
    CAPTURE(index);
    const Trial& trial = trial_of(session, index);
    CHECK(trial_status_name(trial.status) == trial_status_name(status));
    CHECK(trial.error.empty() == trial.is_correct());
    CHECK(trial.score.has_value() == trial.is_correct());
  }
}

TEST_CASE("session: a worker that a third party killed once costs nothing") {
  const Space space = line(3);
  auto scripts = valley(3, 1);
  auto kills = std::make_shared<std::atomic<int>>(1);
  scripts[1].on_run = [kills] {
    if (kills->fetch_sub(1) > 0) throw WorkerLost("killed");
  };
  ScriptedBackend backend(scripts);
  Session session(space, backend, {});
  CHECK(session.run().best == 1);
}

TEST_CASE("session: the start of a device is no configuration's time") {
  const Space space = line(3);
  auto scripts = valley(3, 1);
  SessionOptions options;
  options.run_timeout_s = 0.2;
  ScriptedBackend backend(scripts);
  backend.on_prepare = [](const WaitLimits& limits) {
    REQUIRE(limits.deadline.has_value());
    std::this_thread::sleep_for(std::chrono::milliseconds(300));
  };
  Session session(space, backend, options);
  CHECK(session.run().best == 1);
  CHECK(backend.prepared == 3);
  for (const auto& trial : session.trials()) CHECK(trial->is_correct());
}

TEST_CASE("session: a device that does not start ends it") {
  const Space space = line(3);
  ScriptedBackend backend(valley(3, 1));
  backend.on_prepare = [](const WaitLimits&) { throw Timeout("no answer"); };
  Session session(space, backend, {});
  CHECK_THROWS_AS(session.run(), DeviceNotFound);
}

TEST_CASE("session: what no configuration could do better ends it and keeps what was found") {
  const Space space = line(40);
  auto scripts = valley(40, 0);
  scripts[20].on_compile = raises<NvrtcNotFound>("no libnvrtc");
  ScriptedBackend backend(scripts);
  Session session(space, backend, {});
  CHECK_THROWS_AS(session.run(), NvrtcNotFound);
  CHECK(session.result().best == 0);
  CHECK(session.result().reason == SessionEnd::cancelled);
  const int compiled = backend.compiled;
  while (session.next() != nullptr) {}  // trials that ended beside it
  CHECK(backend.compiled == compiled);
}

TEST_CASE("session: the same seed and results ask the same, however long each takes") {
  const Space space = line(300);
  const auto asked = [&](std::uint64_t seed, double jitter) {
    auto scripts = valley(300, 211);
    for (auto& [index, script] : scripts)
      script.compile_s = 0.0005 + jitter * double(index * 7919 % 13) / 13;
    ScriptedBackend backend(scripts);
    SessionOptions options;
    options.budget.evaluations = 60;
    options.seed = seed;
    Session session(space, backend, options);
    session.run();
    std::vector<std::uint64_t> order(60);
    for (const auto& trial : session.trials()) order.at(trial->number) = trial->index;
    return order;
  };
  const auto first = asked(5, 0);
  CHECK(first == asked(5, 0.006));
  CHECK(first != asked(6, 0));
}

TEST_CASE("session: budgets end it") {
  const Space space = line(500);
  auto scripts = valley(500, 0);
  const auto run = [&](Budget budget) {
    ScriptedBackend backend(scripts);
    SessionOptions options;
    options.budget = budget;
    options.strategy = "random";
    Session session(space, backend, options);
    return session.run();
  };
  CHECK(run({.evaluations = 17}).evaluations == 17);
  CHECK(run({.evaluations = 17}).reason == SessionEnd::budget);
  CHECK(run({.evaluations = 500}).reason == SessionEnd::complete);
  const SessionResult timed = run({.seconds = 0.05});
  CHECK(timed.reason == SessionEnd::budget);
  CHECK(timed.evaluations < 400);
  const SessionResult aimed = run({.target = 60.0});
  CHECK(aimed.reason == SessionEnd::target);
  CHECK(*aimed.median_ms <= 60);
  for (auto& [index, script] : scripts)
    script.on_run = [] { std::this_thread::sleep_for(std::chrono::milliseconds(2)); };
  ScriptedBackend backend(scripts);
  SessionOptions options;
  options.budget.gpu_seconds = 0.02;
  Session measured(space, backend, options);
  CHECK(measured.run().reason == SessionEnd::budget);
  double spent = 0, before_last = 0;
  for (const auto& trial : measured.trials()) {
    CHECK(trial->gpu_s() >= 0.002);
    before_last = std::exchange(spent, spent + trial->gpu_s());
  }
  CHECK(spent >= 0.02);
  CHECK(before_last < 0.02);
  for (const Budget& bad :
       {Budget{.seconds = 0.0}, Budget{.seconds = -1.0}, Budget{.evaluations = 0},
        Budget{.gpu_seconds = std::nan("")}, Budget{.target = std::nan("")}}) {
    CHECK_THROWS_AS(run(bad), InvalidArgument);
  }
}

TEST_CASE("session: equal code is measured once, and each configuration has the result") {
  const Space space = line(30);
  auto scripts = valley(30, 0);
  for (auto& [index, script] : scripts) {
    script.code = format("code {}", index / 10);
    script.time_ms = 2 + double(index / 10);
  }
  ScriptedBackend backend(scripts);
  Session session(space, backend, {});
  session.run();
  CHECK(session.trials().size() == 30);
  CHECK(backend.compiled == 30);
  CHECK(backend.verified == 3);
  for (const auto& trial : session.trials()) {
    CHECK(trial->median_ms == 2 + double(trial->index / 10));
    if (trial->same_as) CHECK(*trial->same_as != trial->number);
  }
  CHECK(std::count_if(session.trials().begin(), session.trials().end(),
                      [](const auto& trial) { return trial->same_as.has_value(); }) == 27);
}

TEST_CASE("session: compiles overlap, the longest first once they are known") {
  const Space space = line(60);
  auto scripts = valley(60, 0);
  for (auto& [index, script] : scripts) script.compile_s = index % 2 == 1 ? 0.008 : 0.001;
  Space two;
  two.add("kind", {std::int64_t{0}, std::int64_t{1}});
  std::vector<Value> rest;
  for (std::int64_t i = 0; i < 30; ++i) rest.emplace_back(i);
  two.add("rest", rest);  // index = kind * 30 + rest
  for (auto& [index, script] : scripts) script.compile_s = index >= 30 ? 0.008 : 0.001;
  ScriptedBackend backend(scripts);
  SessionOptions options;
  options.strategy = "random";
  options.window = 60;
  Session session(two, backend, options);
  session.run();
  CHECK(backend.most_compiling == 3);
  // Behind the first few, which teach the model, the long ones come before the short ones.
  const auto order = backend.order();
  const auto longs = std::count_if(order.begin() + 10, order.begin() + 30,
                                   [](std::uint64_t index) { return index >= 30; });
  CHECK(longs >= 17);
}

TEST_CASE("session: a compile far beyond what was learnt is given up") {
  const Space space = line(40);
  auto scripts = valley(40, 0);
  scripts[39].compile_s = 60;
  ScriptedBackend backend(scripts);
  SessionOptions options;
  options.compile_deadlines = {.factor = 4, .floor_s = 0.05, .first_s = 30};
  Session session(space, backend, options);
  const SessionResult result = session.run();
  CHECK(result.best == 0);
  CHECK(result.seconds < 20);
  CHECK(trial_of(session, 39).status == TrialStatus::timeout);
  CHECK(trial_of(session, 39).error.find("given up after") != std::string::npos);
}

TEST_CASE("session: the end of a budget cancels compiles that it has overtaken") {
  const Space space = line(40);
  auto scripts = valley(40, 0);
  for (auto& [index, script] : scripts) script.compile_s = index == 0 ? 0.001 : 60;
  ScriptedBackend backend(scripts);
  SessionOptions options;
  options.budget.target = 1.0;
  options.strategy = "brute_force";
  Session session(space, backend, options);
  const SessionResult result = session.run();
  CHECK(result.reason == SessionEnd::target);
  CHECK(result.evaluations == 1);
  CHECK(result.seconds < 20);
}

TEST_CASE("session: stopped from another thread, it ends with what it has") {
  const Space space = line(400);
  auto scripts = valley(400, 0);
  std::atomic<bool> hangs{false};
  scripts[50].on_bind = [&hangs] { hangs = true; };
  scripts[50].run_s = 600;
  ScriptedBackend backend(scripts);
  Session session(space, backend, {});
  std::thread stopper([&] {
    while (!hangs) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    session.stop();
  });
  const SessionResult result = session.run();
  stopper.join();
  CHECK(result.reason == SessionEnd::cancelled);
  CHECK(result.evaluations < 400);
  CHECK(result.best == 0);
}

TEST_CASE("session: stopped while others wait for the code that runs, it ends") {
  const Space space = line(3);
  auto scripts = valley(3, 0);
  std::atomic<int> bound{0};
  for (auto& [index, script] : scripts) {
    script.code = "the same";
    script.on_bind = [&bound] { ++bound; };
    script.run_s = 60;
  }
  ScriptedBackend backend(scripts);
  Session session(space, backend, {});
  std::thread stopper([&] {
    while (bound < 3) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    session.stop();
  });
  const SessionResult result = session.run();
  stopper.join();
  CHECK(result.reason == SessionEnd::cancelled);
  CHECK(result.evaluations == 0);
}

TEST_CASE("session: known results are not measured again and count as evaluations") {
  const Space space = line(30);
  ScriptedBackend first_backend(valley(30, 4));
  SessionOptions options;
  options.seed = 3;
  options.strategy = "random";
  options.budget.evaluations = 20;
  Session first(space, first_backend, options);
  for (int i = 0; i < 12; ++i) REQUIRE(first.next() != nullptr);
  SessionOptions again = options;
  for (const auto& trial : first.trials()) again.known[trial->index] = *trial;
  const std::size_t known = again.known.size();
  REQUIRE(known >= 12);
  ScriptedBackend backend(valley(30, 4));
  Session second(space, backend, again);
  second.run();
  CHECK(second.trials().size() == 20);
  CHECK(backend.verified == int(20 - known));
  std::size_t resumed = 0;
  for (const auto& trial : second.trials()) resumed += trial->is_resumed ? 1 : 0;
  CHECK(resumed == known);
}

TEST_CASE("session: the default is tried first and stands beside the winner") {
  const Space space = line(30);
  ScriptedBackend backend(valley(30, 4));
  SessionOptions options;
  options.default_index = 29;
  options.initial = {7, 29, 8};
  Session session(space, backend, options);
  const SessionResult result = session.run();
  CHECK(trial_of(session, 29).number == 0);
  CHECK(trial_of(session, 7).number == 1);
  CHECK(trial_of(session, 8).number == 2);
  CHECK(result.default_ms == 26.0);
  options.default_index = 30;
  CHECK_THROWS_AS(Session(space, backend, options), InvalidArgument);
}

TEST_CASE("session: ask and tell") {
  const Space space = line(6);
  ScriptedBackend backend({});
  SessionOptions options;
  options.budget.evaluations = 4;
  Session session(space, backend, options);
  std::vector<Trial> asked;
  while (auto trial = session.ask()) asked.push_back(*trial);
  CHECK(asked.size() == 4);
  asked[1].status = TrialStatus::runtime;
  asked[1].error = "mine";
  session.tell(asked[1]);
  asked[0].times_ms = {3, 1, 2};
  CHECK(session.tell(asked[0]).median_ms == 2.0);
  asked[3].score = 1.5;
  session.tell(asked[3]);
  CHECK_THROWS_AS(session.tell(asked[3]), InvalidArgument);
  CHECK_THROWS_AS(session.tell(asked[2]), InvalidArgument);  // correct without a time
  CHECK(session.best()->index == asked[3].index);
  CHECK(session.finish().best == asked[3].index);
}

TEST_CASE("session: the best of an earlier one counts, whatever this search asks for") {
  const Space space = line(100);
  ScriptedBackend backend(valley(100, 50));
  SessionOptions options;
  options.strategy = "random";
  options.budget.evaluations = 5;
  Trial known;
  known.index = 50;
  known.score = known.median_ms = 0.5;
  known.times_ms = {0.5, 0.5};
  const auto configurations = [](const Session& session) {
    std::set<std::uint64_t> found;
    for (const auto& trial : session.trials()) found.insert(trial->index);
    return found;
  };
  Session plain(space, backend, options);
  plain.run();
  REQUIRE_FALSE(configurations(plain).contains(50));
  options.known[50] = known;
  Session session(space, backend, options);
  session.run();
  CHECK(session.trials().size() == 5);
  CHECK(trial_of(session, 50).is_resumed);
  CHECK(session.best()->index == 50);
  std::set<std::uint64_t> asked = configurations(session);
  asked.erase(50);
  for (const std::uint64_t index : asked) CHECK(configurations(plain).contains(index));
}

TEST_CASE("session: proposals come before the strategy's, and again later") {
  const Space space = line(100);
  ScriptedBackend backend(valley(100, 50));
  SessionOptions options;
  options.budget.evaluations = 30;
  options.strategy = "random";
  int calls = 0;
  options.propose = [&calls]() -> std::vector<std::uint64_t> {
    return ++calls == 1 ? std::vector<std::uint64_t>{90, 91, 1000} : std::vector<std::uint64_t>{50};
  };
  Session session(space, backend, options);
  CHECK(session.run().best == 50);
  CHECK(trial_of(session, 90).number == 0);
  CHECK(trial_of(session, 91).number == 1);
  CHECK(calls >= 2);
  CHECK(session.trials().size() == 30);
}

TEST_CASE("session: without a clock one cost decides, and equal ones tie") {
  const Space space = line(12);
  auto scripts = valley(12, 3);
  scripts[8].time_ms = 1;
  ScriptedBackend backend(scripts);
  backend.clock = false;
  Session session(space, backend, {});
  const SessionResult result = session.run();
  CHECK(result.best == 3);
  CHECK_FALSE(result.median_ms);
  CHECK(result.score == 1.0);
  CHECK(result.ties == std::vector<std::uint64_t>{3, 8});
  CHECK(backend.sampled == 12);
}

TEST_CASE("session: slow configurations cost two samples") {
  const Space space = line(40);
  ScriptedBackend backend(valley(40, 0));
  backend.compiles = 1;  // so that the fastest one runs first
  SessionOptions options;
  options.samples = 8;
  Session session(space, backend, options);
  while (session.next() != nullptr) {}
  CHECK(backend.sampled <= 8 + 39 * 2 + 8);
}

TEST_CASE("session: several device lanes share the work") {
  const Space space = line(40);
  auto scripts = valley(40, 0);
  for (auto& [index, script] : scripts)
    script.on_run = [] { std::this_thread::sleep_for(std::chrono::milliseconds(2)); };
  ScriptedBackend backend(scripts);
  backend.devices = 4;
  Session session(space, backend, {});
  CHECK(session.run().best == 0);
  CHECK(session.trials().size() == 40);
}

TEST_CASE("session: events of lanes come in pairs") {
  const Space space = line(20);
  ScriptedBackend backend(valley(20, 0));
  SessionOptions options;
  std::map<std::pair<bool, std::uint64_t>, int> open;
  int events = 0;
  options.lane_event = [&](const LaneEvent& event) {
    open[{event.is_gpu, event.trial}] += event.begins ? 1 : -1;
    ++events;
  };
  std::size_t recorded = 0;
  options.record = [&](const Trial&) { ++recorded; };
  options.score = [](Trial& trial) { trial.score = -*trial.median_ms; };
  Session session(space, backend, options);
  CHECK(session.run().best == 19);
  CHECK(recorded == 20);
  CHECK(events == 80);
  for (const auto& entry : open) CHECK(entry.second == 0);
}
