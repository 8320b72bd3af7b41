// Sessions of real kernels on a device of a worker.
#include "tune/session/kernel_backend.h"

#include "base/errors.h"
#include "tune/session/launch_rule.h"
#include "tune/session/session.h"
#include "unit/tune/measure/measure_fixture.h"
#include "worker/child_process.h"

#include <doctest/doctest.h>

#include <chrono>
#include <cstring>
#include <map>
#include <string>
#include <vector>

using namespace kernwright;
using test::device;

namespace {

constexpr const char* kScale = R"(
__constant__ float weight[2];
__global__ void scale(const float* x, float* y, float a, int n) {
#if BAD == 1
  y[(size_t)n + 1000000000] = 0;
#elif BAD == 2
  nonsense;
#elif BAD == 3
  a += 1;
#endif
  int i = blockIdx.x * BLOCK + threadIdx.x;
  if (i < n) y[i] = a * x[i] + weight[1];
})";
constexpr int kCount = 1000;

template <typename T>
std::vector<std::byte> bytes_of(const T& value) {
  std::vector<std::byte> bytes(sizeof value);
  std::memcpy(bytes.data(), &value, sizeof value);
  return bytes;
}

struct Fixture {
  Fixture() {
    space.add("BLOCK", {std::int64_t{32}, std::int64_t{64}, std::int64_t{4096}});
    space.add("BAD", {std::int64_t{0}, std::int64_t{1}, std::int64_t{2}, std::int64_t{3}});
    space.require("BAD == 0 or BLOCK == 32");
    space.set_problem({{"n", std::int64_t{kCount}}});
    for (int i = 0; i < kCount; ++i) x.push_back(float(i));
  }

  KernelBackendOptions options() {
    KernelBackendOptions result;
    result.plan = LaunchRule(space, Program(Source{kScale, "scale.cu", 1, {}}), "scale",
                             {.grid = {"-(-n // BLOCK)"}, .block = {"BLOCK"}});
    result.buffers = {{std::as_bytes(std::span(x)), false}, {std::as_bytes(std::span(x)), true}};
    result.symbols["weight"] = std::as_bytes(std::span(weight));
    result.arguments = [](const ObjectCode&, const KernelSignature&) {
      std::vector<TuningArgument> arguments(4);
      arguments[0].buffer = 0;
      arguments[1].buffer = 1;
      arguments[2].value = bytes_of(2.0F);
      arguments[3].value = bytes_of(kCount);
      return arguments;
    };
    result.check = [](std::span<const TuningOutput> outputs) -> std::optional<std::string> {
      if (outputs.size() != 1 || outputs[0].buffer != 1) return "other outputs than y";
      std::vector<float> y(kCount);
      std::memcpy(y.data(), outputs[0].bytes.data(), outputs[0].bytes.size());
      for (int i = 0; i < kCount; ++i)
        if (y[std::size_t(i)] != 2.0F * float(i) + 5) return "wrong";
      return std::nullopt;
    };
    result.devices = {device().label()};
    result.worker.command = {TEST_TUNE_WORKER};
    return result;
  }

  Space space;
  std::vector<float> x;
  float weight[2] = {0, 5};
};

}  // namespace

TEST_CASE("kernel backend: a session survives what kernels do") {
  Fixture fixture;
  KernelBackend backend(device(), fixture.options());
  CHECK(backend.open().is_simulated == device().is_simulated());
  Session session(fixture.space, backend, {});
  const SessionResult result = session.run();
  REQUIRE(result.best);
  std::map<std::string, std::string> statuses;
  for (const auto& trial : session.trials()) {
    const Choices choices = fixture.space.configurations().at(trial->index);
    statuses[fixture.space.describe(choices)] = trial_status_name(trial->status);
    if (trial->is_correct()) {
      CHECK(trial->resources.registers > 0);
      CHECK(*trial->score > 0);
    }
  }
  CHECK(statuses == std::map<std::string, std::string>{{"BLOCK=32, BAD=0", "correct"},
                                                       {"BLOCK=32, BAD=1", "runtime"},
                                                       {"BLOCK=32, BAD=2", "compile"},
                                                       {"BLOCK=32, BAD=3", "correctness"},
                                                       {"BLOCK=64, BAD=0", "correct"},
                                                       {"BLOCK=4096, BAD=0", "constraints"}});
}

TEST_CASE("kernel backend: without a worker the session ends, and no configuration is to blame") {
  Fixture fixture;
  KernelBackendOptions options = fixture.options();
  options.worker.command = {"no-such-worker"};
  KernelBackend backend(device(), std::move(options));
  Session session(fixture.space, backend, {});
  CHECK_THROWS_WITH_AS(session.run(), doctest::Contains("no-such-worker"), ProcessNotStarted);
  for (const auto& trial : session.trials()) CHECK(trial->status != TrialStatus::runtime);
}

TEST_CASE("kernel backend: a process that is new at a sample has the inputs") {
  Fixture fixture;
  KernelBackendOptions options = fixture.options();
  options.plan = [](std::uint64_t) {
    return KernelPlan{.program = Program(Source{R"(
__global__ void check(const float* x, float* y, float a, int n) {
  if (x[n - 1] != n - 1 || y[n - 1] == y[n - 1]) asm("trap;");
})",
                                                "check.cu",
                                                1,
                                                {}})};
  };
  options.symbols.clear();
  KernelBackend backend(device(), std::move(options));
  const TrialWorkRef work = backend.plan(0);
  backend.compile(*work, {});
  backend.bind(*work);
  backend.load(0, *work, {});
  const TrialSamples samples = backend.sample(0, *work, 1, 0, {});
  CHECK((samples.cost || samples.times_ms.size() == 1));
}

TEST_CASE("kernel backend: what is wrong with a try is told") {
  Fixture fixture;
  KernelBackend backend(device(), fixture.options());
  backend.try_once(0);
  CHECK_THROWS_AS(backend.try_once(2), CompileError);
  CHECK_THROWS_WITH_AS(backend.try_once(3), "wrong", Error);
  KernelBackendOptions none = fixture.options();
  none.devices.clear();
  CHECK_THROWS_AS(KernelBackend(device(), none), InvalidArgument);
  KernelBackendOptions other = fixture.options();
  other.symbols["other"] = {};
  KernelBackend without(device(), other);
  CHECK_THROWS_AS(without.try_once(0), NameNotFound);
}

TEST_CASE("kernel backend: a sample finds the inputs whatever the trial before it did") {
  Space space;
  space.add("WAY", {std::int64_t{0}, std::int64_t{1}, std::int64_t{2}});
  const char* const text = R"(
__global__ void gather(const int* at, int* y, int n) {
  int i = threadIdx.x;
  if (WAY == 1) {
    const_cast<int*>(at)[i] = -1;
    return;
  }
  while (WAY == 2) y[n] = atomicAdd(&y[n], 1);
  if (at[i] != n - i) __trap();
  y[i] = at[i];
})";
  std::vector<int> at;
  for (int i = 0; i < 32; ++i) at.push_back(32 - i);
  const std::vector<int> y(33);
  KernelBackendOptions options;
  options.plan = LaunchRule(space, Program(Source{text, "gather.cu", 1, {}}), "gather",
                            {.grid = {"1"}, .block = {"32"}});
  options.buffers = {{std::as_bytes(std::span(at)), false}, {std::as_bytes(std::span(y)), true}};
  options.arguments = [](const ObjectCode&, const KernelSignature&) {
    return std::vector<TuningArgument>{{.buffer = 0}, {.buffer = 1}, {.value = bytes_of(32)}};
  };
  options.check = [](std::span<const TuningOutput>) { return std::optional<std::string>("wrong"); };
  options.devices = {device().label()};
  options.worker.command = {TEST_TUNE_WORKER};
  KernelBackend backend(device(), options);
  const auto prepared = [&](std::uint64_t index) {
    TrialWorkRef work = backend.plan(index);
    backend.compile(*work, {});
    backend.bind(*work);
    return work;
  };
  const TrialWorkRef good = prepared(0), spoils = prepared(1), hangs = prepared(2);
  backend.load(0, *spoils, {});
  CHECK(backend.verify(0, *spoils, kFirstLaunches, {}) ==
        "argument 0 (at) is const in the kernel's signature, but its byte 0 was changed");
  backend.load(0, *good, {});
  CHECK_NOTHROW(backend.sample(0, *good, 1, 0, {}));
  backend.load(0, *hangs, {});
  CHECK_THROWS_AS(backend.verify(0, *hangs, 1, WaitLimits{}.within(std::chrono::seconds(1))),
                  Timeout);
  backend.load(0, *good, {});  // on a new device
  CHECK_NOTHROW(backend.sample(0, *good, 1, 0, {}));
}

TEST_CASE("launch rule: expressions give the launch, values the defines") {
  Space space;
  space.add("B", {std::int64_t{32}, std::int64_t{64}});
  space.add("F", {true, false});
  space.add("S", {0.5});
  space.add("T", {std::string("row"), std::string()});
  space.set_problem({{"n", std::int64_t{100}}, {"half", 0.5}});
  const Program program(Source{"__global__ void k() {}", "k.cu", 1, {}});
  const LaunchRule rule(space, program, "k",
                        {.grid = {"-(-n // B)", "2"}, .block = {"B"}, .shared_bytes = "4 * B"});
  const KernelPlan plan = rule(0);
  CHECK(plan.grid == Dim3{4, 2, 1});
  CHECK(plan.block == Dim3{32, 1, 1});
  CHECK(plan.shared_bytes == 128);
  const std::map<std::string, std::string> defines{
      {"B", "32"}, {"F", "1"}, {"S", "0.5"}, {"T", "row"}};
  CHECK(plan.program.options().defines == defines);
  CHECK(define_text(std::string()) == " ");
  for (const char* grid : {"0", "-1", "B / 64", "half", "T", "1 << 40"}) {
    CAPTURE(grid);
    CHECK_THROWS_AS(LaunchRule(space, program, "k", {.grid = {grid}, .block = {"B"}})(0),
                    InvalidArgument);
  }
  CHECK_THROWS_AS(LaunchRule(space, program, "k", {.grid = {}, .block = {"B"}}), InvalidArgument);
  CHECK_THROWS_AS(LaunchRule(space, program, "k", {.grid = {"m"}, .block = {"B"}}), NameNotFound);
}
