// Measuring behind a worker says what measuring here says.
#include "tune/measure/measure_task.h"

#include "base/errors.h"
#include "jit/program.h"
#include "unit/tune/measure/measure_fixture.h"
#include "worker/device/device_tasks.h"

#include <doctest/doctest.h>

#include <cstring>
#include <string>
#include <vector>

using namespace kernwright;
using test::AddOne;
using test::device;
using test::has_no_gpu;

namespace {

constexpr const char* kAddOne =
    "__global__ void add_one(float* x, unsigned n, unsigned stride) {\n"
    "  unsigned i = (blockIdx.x * blockDim.x + threadIdx.x) * stride;\n"
    "  if (i < n) x[i] += 1;\n"
    "}";

/// The work of AddOne on a device of a worker.
struct RemoteAddOne {
  explicit RemoteAddOne(unsigned its_count)
      : remote({.worker = {.command = {TEST_TUNE_WORKER}}}), count(its_count) {
    const LazyKernel here = kernel(kAddOne, "add_one");
    code = here.object_code(device());
    load();
  }

  void load() {
    memory = remote.allocate(std::uint64_t{4} * count);
    remote.fill(memory, std::byte{0});
    launch.kernel = remote.load(*code, "add_one");
    launch.grid = {(count + 127) / 128};
    launch.block = {128};
    launch.arguments = {RemoteArgument::at(memory), RemoteArgument::of(count),
                        RemoteArgument::of(1U)};
  }

  float first() {
    float value = 0;
    std::vector<std::byte> bytes(sizeof value);
    remote.read(memory, bytes);
    std::memcpy(&value, bytes.data(), sizeof value);
    return value;
  }

  RemoteDevice remote;
  unsigned count;
  std::shared_ptr<const ObjectCode> code;
  RemoteBuffer memory;
  RemoteLaunch launch;
};

}  // namespace

TEST_CASE("measure task: the counts of this process" * doctest::skip(!has_no_gpu())) {
  RemoteAddOne there(1 << 12);
  AddOne here(1 << 12);
  Timer timer(device());
  const Measurement remote = measure(there.remote, there.launch, {});
  REQUIRE(remote.counts.has_value());
  CHECK(remote.counts == timer.measure(here.work(), {}).counts);
  CHECK(there.first() == 1);
  MeasurePlan rotate;
  rotate.policy = CachePolicy::rotate;
  CHECK(measure(there.remote, there.launch, rotate).counts == remote.counts);
}

TEST_CASE("measure task: restore comes before each run") {
  RemoteAddOne there(1 << 10);
  const RemoteBuffer saved = there.remote.allocate(there.memory.bytes);
  there.remote.fill(saved, std::byte{0});
  const std::vector<RemoteRestore> restore = {{there.memory, saved}};
  for (const CachePolicy policy : {CachePolicy::cold, CachePolicy::rotate}) {
    MeasurePlan plan;
    plan.policy = policy;
    plan.min_samples = plan.max_samples = 3;
    measure(there.remote, there.launch, plan, {}, restore);
    measure(there.remote, there.launch, plan, {}, restore);
    CHECK(there.first() <= 1);  // 0 when another copy was the last
  }
  const RemoteBuffer small = there.remote.allocate(16);
  const std::vector<RemoteRestore> wrong = {{there.memory, small}};
  CHECK_THROWS_AS(measure(there.remote, there.launch, {}, {}, wrong), InvalidArgument);
}

TEST_CASE("measure task: wrong plans, faults and lost memory are typed errors") {
  RemoteAddOne there(256);
  MeasurePlan wrong;
  wrong.min_samples = 0;
  CHECK_THROWS_AS(measure(there.remote, there.launch, wrong), InvalidArgument);
  RemoteLaunch few = there.launch;
  few.arguments.pop_back();
  CHECK_THROWS_AS(measure(there.remote, few, {}), ArgumentError);
  RemoteLaunch large = there.launch;
  large.block = {5000};
  CHECK_THROWS_AS(measure(there.remote, large, {}), LaunchConfigError);
  RemoteLaunch beyond = there.launch;
  beyond.grid = {1 << 20};
  beyond.arguments[1] = RemoteArgument::of(0xffffffffU);
  CHECK_THROWS_AS(measure(there.remote, beyond, {}), Error);  // outside of its memory
  there.remote.kill();
  CHECK_THROWS_AS(measure(there.remote, there.launch, {}), WorkerLost);
  there.load();
  measure(there.remote, there.launch, {});
  CHECK(there.first() >= 1);
}

TEST_CASE("measure task: an endless kernel ends at its deadline, and the next one is measured") {
  RemoteAddOne there(256);
  const LazyKernel endless = kernel(
      "__global__ void endless(volatile float* x, unsigned n, unsigned stride) {\n"
      "  while (x[0] == 0) {}\n}",
      "endless");
  RemoteLaunch launch = there.launch;
  launch.kernel = there.remote.load(*endless.object_code(device()), "endless");
  const auto limits = WaitLimits{}.within(std::chrono::milliseconds(500));
  CHECK_THROWS_AS(measure(there.remote, launch, {}, limits), Timeout);
  there.load();
  measure(there.remote, there.launch, {});
  CHECK(there.first() >= 1);
}

TEST_CASE(
    "measure task: GPU: a worker and this process agree, and so do a fresh and a used worker" *
    doctest::skip(has_no_gpu())) {
  constexpr unsigned kCount = 32 << 20;
  RemoteAddOne used(kCount);
  AddOne here(kCount);
  Timer timer(device());
  MeasurePlan plan;
  plan.min_samples = 40;
  const double first = measure(used.remote, used.launch, plan).median_ms;
  for (int i = 0; i < 5; ++i) measure(used.remote, used.launch, plan);
  const double later = measure(used.remote, used.launch, plan).median_ms;
  RemoteAddOne fresh(kCount);
  const double anew = measure(fresh.remote, fresh.launch, plan).median_ms;
  const double own = timer.measure(here.work(), plan).median_ms;
  CHECK(later / first == doctest::Approx(1).epsilon(0.01));
  CHECK(anew / later == doctest::Approx(1).epsilon(0.01));
  CHECK(own / later == doctest::Approx(1).epsilon(0.01));
}
