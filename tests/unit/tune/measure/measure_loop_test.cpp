// The order of a measurement over a device whose times and clocks are written down.
#include "tune/measure/measure_loop.h"

#include "base/errors.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <atomic>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

using namespace kernwright;

namespace {

/// Answers at once; what it was asked for is in `calls`: 's' a sample, 'u' one without a gate, 'm'
/// many runs, 'g' a graph is set, '0' single runs again.
struct ScriptedSource final : SampleSource {
  Sample take(const TimedWork&, CachePolicy, bool is_gated, const WaitLimits& limits) override {
    check_wait(limits, "a sample");
    calls += is_gated ? 's' : 'u';
    ++samples;
    Sample sample{.ms = next_ms(), .clock_mhz = clock(), .gave_up = is_gated && never_opens};
    if (sample.gave_up) sample.ms = 1000;
    return sample;
  }
  Sample take_many(const TimedWork&, int count, const WaitLimits& limits) override {
    check_wait(limits, "many runs");
    calls += 'm';
    runs += count;
    std::this_thread::sleep_for(std::chrono::microseconds(200));
    return {.ms = many_ms, .clock_mhz = clock(), .queue_ms = queue_ms};
  }
  void set_batch(const TimedWork&, int count) override {
    calls += count == 0 ? '0' : 'g';
    runs_in_graph = std::max(count, 1);
  }
  int batch() const noexcept override { return runs_in_graph; }

  double next_ms() { return ms[std::min(static_cast<std::size_t>(samples), ms.size()) - 1]; }
  long count(char call) const { return std::count(calls.begin(), calls.end(), call); }

  std::vector<double> ms{2.0};  ///< of each sample; the last one goes on
  double many_ms = 2, queue_ms = 0;
  std::function<std::optional<double>()> clock = [] { return std::optional(1500.0); };
  bool never_opens = false;
  std::string calls;
  int samples = 0, runs = 0, runs_in_graph = 1;
};

const TimedWork kWork{.name = "scripted", .queue = [](const Stream&, std::size_t) {}};

MeasurePlan exactly(int samples) {
  MeasurePlan plan;
  plan.min_samples = plan.max_samples = samples;
  plan.warm_up = Seconds(0.004);
  plan.max_warm_up = Seconds(0.05);
  return plan;
}

Measurement run(ScriptedSource& source, const MeasurePlan& plan) {
  return MeasureLoop(source).run(kWork, plan, nullptr, {});
}

}  // namespace

TEST_CASE("measure loop: the first sample is dropped, and kept apart") {
  ScriptedSource source;
  source.ms = {9, 1, 3, 2, 2};
  const Measurement m = run(source, exactly(4));
  CHECK(m.first_ms == 9);
  CHECK(m.times_ms == std::vector<double>{1, 3, 2, 2});
  CHECK(m.median_ms == 2);
  CHECK(m.sm_clock_mhz == 1500);
  CHECK(m.is_gated);
  CHECK_FALSE(m.is_throttled);
  CHECK(m.batch == 1);
  CHECK(source.count('s') == 5);
  CHECK(source.calls.front() == '0');
  CHECK(source.calls.back() == '0');
  CHECK(source.calls.find('s') > source.calls.rfind('m'));  // warm before the first sample
}

TEST_CASE("measure loop: ends when the median is known, at the most samples, and in time") {
  MeasurePlan plan = exactly(1);
  plan.min_samples = 8;
  plan.max_samples = 50;
  plan.max_time = Seconds(10);
  ScriptedSource steady;
  CHECK(run(steady, plan).times_ms.size() == 8);

  ScriptedSource noisy;
  for (int i = 0; i < 100; ++i) noisy.ms.push_back(i % 2 == 0 ? 1 : 3);
  CHECK(run(noisy, plan).times_ms.size() == 50);

  plan.max_time = Seconds(0);
  ScriptedSource slow;
  slow.ms = noisy.ms;
  CHECK(run(slow, plan).times_ms.size() == 3);
  plan.min_samples = 2;
  slow.samples = 0;
  CHECK(run(slow, plan).times_ms.size() == 2);
}

TEST_CASE("measure loop: warms up until the clock is steady, but not for ever") {
  ScriptedSource rising;
  double clock = 500;
  rising.clock = [&] { return std::optional(clock = std::min(1800.0, clock * 1.1)); };
  const Measurement m = run(rising, exactly(3));
  CHECK(m.sm_clock_mhz == 1800);
  CHECK_FALSE(m.is_throttled);

  ScriptedSource restless;
  restless.clock = [&] { return std::optional(clock = clock > 1700 ? 1650 : 1800); };
  const Stopwatch watch;
  CHECK_FALSE(run(restless, exactly(3)).is_throttled);
  CHECK(watch.elapsed() < Seconds(1));

  ScriptedSource blind;  // no clock can be read
  blind.clock = [] { return std::optional<double>(); };
  const Measurement unknown = run(blind, exactly(3));
  CHECK(unknown.sm_clock_mhz == 0);
  CHECK_FALSE(unknown.is_throttled);
  CHECK(unknown.times_ms.size() == 3);
}

TEST_CASE("measure loop: a device that was just busy, or a long run, needs no warm-up") {
  ScriptedSource source;
  MeasureLoop loop(source);
  MeasurePlan plan = exactly(2);
  plan.warm_up = Seconds(0.02);
  const Stopwatch watch;
  loop.run(kWork, plan, nullptr, {});
  CHECK(watch.elapsed() >= plan.warm_up);
  source.calls.clear();
  loop.run(kWork, plan, nullptr, {});
  CHECK(source.count('m') <= 4);

  ScriptedSource slow;
  slow.many_ms = 30;
  run(slow, plan);
  CHECK(slow.count('m') == 1);
  slow.calls.clear();
  slow.queue_ms = 29;  // the host compiled
  run(slow, plan);
  CHECK(slow.count('m') > 1);
}

TEST_CASE("measure loop: throttling is waited out, and its samples do not count") {
  ScriptedSource source;
  source.ms = {2, 2, 4, 4, 2, 2};
  // The clock falls for the third and the fourth sample.
  source.clock = [&] {
    return std::optional(source.samples == 3 || source.samples == 4 ? 900.0 : 1500.0);
  };
  const Stopwatch watch;
  const Measurement m = run(source, exactly(3));
  CHECK(m.times_ms == std::vector<double>{2, 2, 2});
  CHECK_FALSE(m.is_throttled);
  CHECK(watch.elapsed() >= Seconds(0.1));
  CHECK(source.calls.find("sm") != std::string::npos);  // warm again after the pause
}

TEST_CASE("measure loop: a clock that does not come back is said, after a bounded wait") {
  ScriptedSource source;
  source.clock = [&] { return std::optional(source.samples > 1 ? 900.0 : 1500.0); };
  MeasurePlan plan = exactly(5);
  plan.max_throttle_wait = Seconds(0.12);
  const Stopwatch watch;
  const Measurement m = run(source, plan);
  CHECK(m.is_throttled);
  CHECK(m.times_ms.size() == 5);
  CHECK(m.sm_clock_mhz == 900);
  CHECK(watch.elapsed() < Seconds(1));

  ScriptedSource ignored;
  ignored.clock = source.clock;
  plan.clock_floor = 0;  // nothing is throttled
  CHECK_FALSE(run(ignored, plan).is_throttled);
}

TEST_CASE("measure loop: a locked low clock is no throttling") {
  ScriptedSource source;
  source.clock = [] { return std::optional(300.0); };
  CHECK_FALSE(run(source, exactly(3)).is_throttled);
}

TEST_CASE("measure loop: after a gate that nobody opened, samples have none") {
  ScriptedSource source;
  source.never_opens = true;
  const Measurement m = run(source, exactly(3));
  CHECK_FALSE(m.is_gated);
  CHECK(m.times_ms == std::vector<double>{2, 2, 2});
  CHECK(source.count('s') == 1);
  CHECK(source.count('u') == 4);
}

TEST_CASE("measure loop: a graph of as many runs as last 0.2 ms, or as the plan says") {
  MeasurePlan plan = exactly(2);
  plan.policy = CachePolicy::graph;
  ScriptedSource source;
  source.many_ms = 0.004;
  CHECK(run(source, plan).batch == 50);
  source.many_ms = 1e-6;
  CHECK(run(source, plan).batch == 500);
  source.many_ms = 0;
  CHECK(run(source, plan).batch == 500);
  source.many_ms = 10;
  CHECK(run(source, plan).batch == 1);
  plan.batch = 7;
  CHECK(run(source, plan).batch == 7);
  CHECK(source.batch() == 1);  // single runs again
}

TEST_CASE("measure loop: a limit ends it also while it waits for the clock") {
  ScriptedSource source;
  source.clock = [&] { return std::optional(source.samples > 0 ? 900.0 : 1500.0); };
  WaitLimits limits;
  limits.stop = std::make_shared<std::atomic<bool>>(false);
  std::thread stopper([stop = limits.stop] {
    std::this_thread::sleep_for(std::chrono::milliseconds(30));
    stop->store(true);
  });
  MeasureLoop loop(source);
  const Stopwatch watch;
  CHECK_THROWS_AS(loop.run(kWork, exactly(5), nullptr, limits), Cancelled);
  CHECK(watch.elapsed() < Seconds(0.5));
  stopper.join();
}

TEST_CASE("measure loop: what is above the cap has one sample, but not on a GPU that was idle") {
  ScriptedSource source;
  MeasureLoop loop(source);
  MeasurePlan plan = exactly(3);
  plan.cap_ms = 1.5;
  CHECK(loop.run(kWork, plan, nullptr, {}).times_ms.size() == 3);  // idle until now
  source.calls.clear();
  const Measurement slow = loop.run(kWork, plan, nullptr, {});
  CHECK(slow.times_ms == std::vector{2.0});
  CHECK(slow.median_ms == 2.0);
  CHECK(source.calls == "0ms");
  plan.cap_ms = 2.5;
  CHECK(loop.run(kWork, plan, nullptr, {}).times_ms.size() == 3);
  plan.cap_ms = 1.5;
  source.never_opens = true;  // a sample that says nothing
  CHECK(loop.run(kWork, plan, nullptr, {}).times_ms.size() == 3);
}
