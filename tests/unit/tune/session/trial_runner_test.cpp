// What lanes do with one trial, and what is left of it when it fails.
#include "tune/session/trial_runner.h"

#include "unit/tune/session/scripted_backend.h"
#include "worker/worker.h"

#include <doctest/doctest.h>

using namespace kernwright;

namespace {

/// One configuration with a script, planned.
struct Lane {
  explicit Lane(Script script) : backend({{0, std::move(script)}}) {
    pending.work = backend.plan(0);
    pending.stop = std::make_shared<std::atomic<bool>>(false);
  }
  const Trial& run(std::optional<double> best_sample = {}) {
    runner.compile(pending);
    runner.run(pending, 0, best_sample);
    return pending.trial;
  }

  ScriptedBackend backend;
  SessionOptions options;
  SessionClock clock;
  StopFlag stop = std::make_shared<std::atomic<bool>>(false);
  TrialRunner runner{backend, options, clock, stop};
  PendingTrial pending;
};

}  // namespace

TEST_CASE("trial runner: a sound one has times, resources and the seconds that it took") {
  Lane lane({.time_ms = 3, .compile_s = 0.002, .run_s = 0.002});
  const Trial& trial = lane.run();
  CHECK_FALSE(lane.pending.error);
  CHECK(trial.times_ms == std::vector<double>(8, 3.0));
  CHECK(trial.resources.registers == 32);
  CHECK(trial.compile_ended_s - trial.compile_started_s >= 0.002);
  CHECK(trial.verify_s >= 0.002);
  CHECK(lane.pending.compiled.code == "code 0");
}

TEST_CASE("trial runner: what is far behind the best gets two samples, the default's place all") {
  Lane slow({.time_ms = 3});
  CHECK(slow.run(1.0).times_ms.size() == 2);
  Lane close({.time_ms = 1.1});
  CHECK(close.run(1.0).times_ms.size() == 8);
  Lane uncounted({.time_ms = 3});
  uncounted.backend.clock = false;
  uncounted.run();
  CHECK(uncounted.backend.sampled == 1);
  CHECK(uncounted.pending.cost == 3.0);
}

TEST_CASE("trial runner: a lost worker is tried again once, other failures are kept") {
  int left = 1;
  Lane once({.on_run = [&left] {
    if (left-- > 0) throw WorkerLost("killed");
  }});
  CHECK(once.run().times_ms.size() == 8);
  CHECK_FALSE(once.pending.error);
  CHECK(once.backend.verified == 2);
  left = 2;
  Lane twice({.on_run = [&left] {
    if (left-- > 0) throw WorkerLost("killed");
  }});
  twice.run();
  CHECK_THROWS_AS(std::rethrow_exception(twice.pending.error), WorkerLost);
  Lane wrong({.wrong = "y[3] is 1"});
  CHECK(wrong.run().status == TrialStatus::correctness);
  CHECK(wrong.pending.trial.times_ms.empty());
  Lane late({.wrong_at_last = "y[3] is 1"});
  late.backend.clock = false;
  CHECK(late.run().status == TrialStatus::correctness);
  CHECK(late.pending.trial.error == "y[3] is 1");
  CHECK(late.backend.sampled == 1);
  CHECK_FALSE(late.pending.cost);
}

TEST_CASE("trial runner: compiles and runs are stopped by flags of their own") {
  Lane compile({.compile_s = 30});
  compile.pending.stop->store(true);
  compile.runner.compile(compile.pending);
  CHECK_THROWS_AS(std::rethrow_exception(compile.pending.error), Cancelled);
  Lane run({.run_s = 30});
  run.stop->store(true);
  run.run();
  CHECK_THROWS_AS(std::rethrow_exception(run.pending.error), Cancelled);
}

TEST_CASE("trial runner: a device that does not start is no failure of the configuration") {
  Lane lane({});
  lane.backend.on_prepare = [](const WaitLimits&) { throw Timeout("120 s"); };
  lane.run();
  CHECK_THROWS_AS(std::rethrow_exception(lane.pending.error), DeviceNotFound);
}
