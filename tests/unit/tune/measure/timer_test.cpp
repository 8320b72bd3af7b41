// What a timer measures: counts on the simulated device, times on a GPU.
#include "tune/measure/timer.h"

#include "base/errors.h"
#include "driver/nvml.h"
#include "unit/tune/measure/measure_fixture.h"

#include <doctest/doctest.h>

#include <atomic>
#include <cmath>
#include <string>
#include <thread>

using namespace kernwright;
using test::AddOne;
using test::device;
using test::has_no_gpu;

namespace {

/// Memory moved by a run: what the times of two sizes are compared by.
constexpr unsigned kMany = 32 << 20;

MeasurePlan plan_of(CachePolicy policy) {
  MeasurePlan plan;
  plan.policy = policy;
  return plan;
}

}  // namespace

TEST_CASE("timer: simulated device: counts, the same each time, of one run" *
          doctest::skip(!has_no_gpu())) {
  Timer timer(device());
  AddOne small(1 << 12), large(1 << 13), strided(1 << 12, 8);
  const Measurement first = timer.measure(small.work(), {});
  REQUIRE(first.counts.has_value());
  CHECK(first.times_ms.empty());
  CHECK(small.runs() == 1);
  CHECK(timer.measure(small.work(), plan_of(CachePolicy::warm)).counts == first.counts);

  // 4096 floats: 512 sectors are read and 512 written, by 128 warps.
  CHECK(first.counts->transactions == 1024);
  CHECK(first.counts->instructions % 128 == 0);
  const Measurement twice = timer.measure(large.work(), {});
  CHECK(twice.counts->transactions == 2 * first.counts->transactions);
  CHECK(twice.counts->instructions == 2 * first.counts->instructions);
  // An eighth of the floats, a sector for each.
  const Measurement apart = timer.measure(strided.work(), {});
  CHECK(apart.counts->transactions == 1024);
  CHECK(apart.counts->instructions * 8 == first.counts->instructions);
  CHECK(score(apart, Objective::time) < score(first, Objective::time));
}

TEST_CASE("timer: simulated device: restore runs before the run and is not counted" *
          doctest::skip(!has_no_gpu())) {
  Timer timer(device());
  AddOne one(256);
  const Measurement plain = timer.measure(one.work(), {});
  TimedWork work = one.work();
  work.restore = [&](const Stream& stream) { one.clear(stream); };
  CHECK(timer.measure(work, {}).counts == plain.counts);
  CHECK(one.runs() == 1);
}

TEST_CASE("timer: simulated device: no energy, and faults come through" *
          doctest::skip(!has_no_gpu())) {
  Timer timer(device());
  AddOne one(256);
  MeasurePlan plan;
  plan.energy = true;
  CHECK_THROWS_AS(timer.measure(one.work(), plan), InvalidArgument);
  CHECK(one.runs() == 0);

  CUdeviceptr nowhere = 64;
  unsigned count = 256, stride = 1;
  const std::array<void*, 3> arguments = {&nowhere, &count, &stride};
  const LazyKernel source = kernel(
      "__global__ void add_one(float* x, unsigned n, unsigned stride) { x[threadIdx.x] += n; }");
  const TimedWork bad = launch_work(source.on(device()), {.block = {32}}, arguments);
  CHECK_THROWS_AS(timer.measure(bad, {}), DeviceFault);
  CHECK(timer.measure(one.work(), {}).counts.has_value());  // and the timer goes on
}

TEST_CASE("timer: plans and work without a meaning are refused before anything runs") {
  Timer timer(device());
  AddOne one(256);
  const auto refused = [&](auto change) {
    MeasurePlan plan;
    change(plan);
    CHECK_THROWS_AS(timer.measure(one.work(), plan), InvalidArgument);
  };
  refused([](MeasurePlan& plan) { plan.min_samples = 0; });
  refused([](MeasurePlan& plan) { plan.max_samples = plan.min_samples - 1; });
  refused([](MeasurePlan& plan) { plan.target_noise = -1; });
  refused([](MeasurePlan& plan) { plan.target_noise = NAN; });
  refused([](MeasurePlan& plan) { plan.batch = -1; });
  refused([](MeasurePlan& plan) { plan.clock_floor = 1; });
  refused([](MeasurePlan& plan) { plan.max_time = Seconds(-1); });
  refused([](MeasurePlan& plan) { plan.warm_up = Seconds(INFINITY); });
  refused([](MeasurePlan& plan) { plan.policy = CachePolicy::rotate; });  // one copy only
  CHECK_THROWS_AS(timer.measure({.name = "nothing", .queue = {}}, {}), InvalidArgument);
  TimedWork none = one.work();
  none.copies = 0;
  CHECK_THROWS_AS(timer.measure(none, {}), InvalidArgument);
  CHECK(one.runs() == 0);
  WaitLimits stopped;
  stopped.stop = std::make_shared<std::atomic<bool>>(true);
  CHECK_THROWS_AS(timer.measure(one.work(), {}, stopped), Cancelled);
  CHECK(one.runs() == 0);
}

TEST_CASE("timer: a launch as work is checked when it is made") {
  AddOne one(256);
  const LazyKernel two = kernel("__global__ void two(int a, int b) {}");
  int value = 1;
  const std::array<void*, 1> too_few = {&value};
  const std::array<void*, 2> both = {&value, &value};
  CHECK_THROWS_AS(launch_work(two.on(device()), {.block = {1}}, too_few), ArgumentError);
  CHECK_THROWS_AS(launch_work(two.on(device()), {.block = {5000}}, both), LaunchConfigError);
  CHECK(launch_work(two.on(device()), {.block = {1}}, both).name == "two");
}

TEST_CASE("timer: typed arguments become the work's own") {
  const LazyKernel add = kernel(
      "__global__ void add(float* x, float a, int n) {\n"
      "  if (threadIdx.x < n) x[threadIdx.x] += a;\n}");
  const Stream stream = Stream::create(device());
  const Buffer memory(default_resource(device()), 64 * sizeof(float), stream);
  fill(device(), memory.address(), 0, 4, 64, stream);
  TimedWork work;
  {
    float a = 1.5F;
    int n = 64;
    work = timed_launch(add.on(device()), {.block = {64}}, Pointer{memory.address()}, a, n);
    a = 100;
    n = 0;
  }
  work.queue(stream, 0);
  work.queue(stream, 0);
  stream.synchronize();
  float last = 0;
  copy_to_host(device(), &last, memory.address() + 63 * sizeof last, sizeof last);
  CHECK(last == 3);
  CHECK_THROWS_AS(timed_launch(add.on(device()), {.block = {64}}, 1, 2), ArgumentError);
}

TEST_CASE("timer: cache policies by name") {
  for (const CachePolicy policy :
       {CachePolicy::cold, CachePolicy::warm, CachePolicy::rotate, CachePolicy::graph}) {
    CHECK(parse_cache_policy(cache_policy_name(policy)) == policy);
  }
  CHECK_THROWS_AS(parse_cache_policy("Cold"), InvalidArgument);
  CHECK_THROWS_AS(parse_cache_policy(""), InvalidArgument);
}

TEST_CASE("timer: GPU: time grows with the work, samples are as many as asked for" *
          doctest::skip(has_no_gpu())) {
  Timer timer(device());
  AddOne small(kMany / 4), large(kMany);
  MeasurePlan plan;
  plan.min_samples = plan.max_samples = 12;
  const Measurement a = timer.measure(small.work(), plan), b = timer.measure(large.work(), plan);
  CHECK(a.times_ms.size() == 12);
  CHECK(a.first_ms > 0);
  CHECK(a.interval_ms.low <= a.median_ms);
  CHECK(a.median_ms <= a.interval_ms.high);
  CHECK(b.median_ms / a.median_ms == doctest::Approx(4).epsilon(0.25));
  // 256 MiB through memory of 2 to 5 TB/s.
  CHECK(b.median_ms > 0.04);
  CHECK(b.median_ms < 0.4);
  CHECK(a.is_gated);
  CHECK_FALSE(a.counts.has_value());
  CHECK(a.sm_clock_mhz > 300);
  CHECK(a.sm_clock_mhz < 3500);
  CHECK(a.gpu_seconds > 0);
}

TEST_CASE("timer: GPU: what fits into L2 is faster warm than cold, and a graph is no slower" *
          doctest::skip(has_no_gpu())) {
  Timer timer(device());
  const test::ScaleSome one;
  const double cold = timer.measure(one.work(), plan_of(CachePolicy::cold)).median_ms;
  const double warm = timer.measure(one.work(), plan_of(CachePolicy::warm)).median_ms;
  const Measurement graph = timer.measure(one.work(), plan_of(CachePolicy::graph));
  CHECK(warm < 0.85 * cold);        // an H100: 13.9 and 20.4 us
  CHECK(graph.sm_clock_mhz > 300);  // also of samples that are too short to tell
  CHECK(graph.median_ms < 1.05 * warm);
  CHECK(graph.batch > 1);
  MeasurePlan seven = plan_of(CachePolicy::graph);
  seven.batch = 7;
  CHECK(timer.measure(one.work(), seven).batch == 7);
}

TEST_CASE("timer: GPU: copies in turn are cold although nothing is flushed" *
          doctest::skip(has_no_gpu())) {
  Timer timer(device());
  std::vector<std::unique_ptr<test::ScaleSome>> copies;
  std::vector<TimedWork> works;
  for (int i = 0; i < 12; ++i) {  // 192 MiB
    copies.push_back(std::make_unique<test::ScaleSome>());
    works.push_back(copies.back()->work());
  }
  TimedWork rotating = works.front();
  rotating.copies = works.size();
  rotating.queue = [&](const Stream& stream, std::size_t copy) { works[copy].queue(stream, 0); };
  const double warm = timer.measure(works.front(), plan_of(CachePolicy::warm)).median_ms;
  const double rotated = timer.measure(rotating, plan_of(CachePolicy::rotate)).median_ms;
  CHECK(rotated > 1.15 * warm);
}

TEST_CASE("timer: GPU: work that waits for the device ends, without a gate" *
          doctest::skip(has_no_gpu())) {
  Timer timer(device());
  AddOne one(1 << 16);
  TimedWork work = one.work();
  work.queue = [queue = work.queue](const Stream& stream, std::size_t copy) {
    queue(stream, copy);
    stream.synchronize();
  };
  MeasurePlan plan;
  plan.min_samples = plan.max_samples = 3;
  const Measurement m = timer.measure(work, plan);
  CHECK_FALSE(m.is_gated);
  CHECK(m.times_ms.size() == 3);
  CHECK(m.median_ms < 100);  // the sample behind the gate that gave up is not among them
}

TEST_CASE("timer: GPU: a deadline ends a measurement in the middle of a long kernel" *
          doctest::skip(has_no_gpu())) {
  Timer timer(device());
  const LazyKernel slow = kernel(
      "__global__ void slow(long long cycles) {\n"
      "  const long long end = clock64() + cycles;\n  while (clock64() < end) {}\n}");
  long long cycles = 1'000'000'000;  // half a second
  const std::array<void*, 1> arguments = {&cycles};
  const TimedWork work = launch_work(slow.on(device()), {}, arguments);
  const auto begin = std::chrono::steady_clock::now();
  const auto limits = WaitLimits{}.within(std::chrono::milliseconds(100));
  CHECK_THROWS_AS(timer.measure(work, {}, limits), Timeout);
  CHECK(std::chrono::steady_clock::now() - begin < std::chrono::milliseconds(200));
  timer.stream().synchronize();
  AddOne one(256);
  CHECK(timer.measure(one.work(), {}).median_ms > 0);
}

TEST_CASE("timer: GPU: energy of a run, and power within the limits of a board" *
          doctest::skip(has_no_gpu())) {
  std::string why;
  if (Nvml::system(&why) == nullptr) {
    MESSAGE("no NVML: ", why);
    return;
  }
  Timer timer(device());
  AddOne one(kMany);
  MeasurePlan plan;
  plan.energy = true;
  const Measurement m = timer.measure(one.work(), plan);
  REQUIRE(m.energy_joules.has_value());
  REQUIRE(m.power_watts.has_value());
  CHECK(*m.power_watts > 20);
  CHECK(*m.power_watts < 1500);
  // Joules are watts times seconds of one run; the runs follow each other closely.
  CHECK(*m.energy_joules == doctest::Approx(*m.power_watts * m.median_ms / 1000).epsilon(0.5));
}

TEST_CASE("timer: GPU: two timers measure the same within a percent" *
          doctest::skip(has_no_gpu())) {
  AddOne one(kMany);
  MeasurePlan plan;
  plan.min_samples = 40;
  Timer first(device()), second(device());
  const double a = first.measure(one.work(), plan).median_ms;
  const double b = second.measure(one.work(), plan).median_ms;
  CHECK(b / a == doctest::Approx(1).epsilon(0.01));
}
