// Whole judgements from C++: the task is host functions, the devices are worker processes.
#include "tune/judge/judge.h"

#include <doctest/doctest.h>

#include <nlohmann/json.hpp>
#include <thread>

#include "base/errors.h"
#include "driver/nvrtc_loader.h"
#include "unit/site_packages.h"
#include "worker/worker.h"

using namespace kernwright;

namespace {

constexpr const char* kGood = R"(
__global__ void twice(const float* x, float* y, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] = 2 * x[i];
})";

std::vector<float> floats_of(const HostValue& value) {
  const auto* begin = reinterpret_cast<const float*>(value.bytes.data());
  return {begin, begin + value.elements()};
}

Task twice() {
  Task task;
  task.entry = "twice";
  task.signature = "const float* x, float* y, int n";
  task.cases = 4;
  task.inputs = [](std::uint64_t seed, int number) {
    std::vector<float> x;
    for (int i = 0; i < 100 * number + 1; ++i) {
      x.push_back(static_cast<float>(derived_seed(seed, static_cast<std::uint64_t>(i)) % 1000));
    }
    const auto n = static_cast<std::int64_t>(x.size());
    return HostValues{HostValue::from(ScalarType::float32, x),
                      HostValue::from(ScalarType::float32, std::vector<float>(x.size())),
                      HostValue::make_integer(n)};
  };
  task.reference = [](const HostValues& inputs) {
    std::vector<double> y;
    for (const float x : floats_of(inputs[0])) y.push_back(2.0 * x);
    return Expected{std::nullopt, HostValue::from(ScalarType::float64, y), std::nullopt};
  };
  return task;
}

Submission text(std::string source) {
  set_site_packages({testing::site_packages()});
  set_worker_command({TEST_TUNE_WORKER});
  Submission submission;
  submission.source.text = std::move(source);
  return submission;
}

std::string with(std::string source, const std::string& from, const std::string& to) {
  return source.replace(source.find(from), from.size(), to);
}

Judge& judge() {
  static Judge& made = *new Judge;
  return made;
}

}  // namespace

TEST_CASE("judge: a right kernel is accepted, with times and a speedup") {
  Submission submission = text(kGood);
  submission.baseline.emplace();
  submission.baseline->text = with(kGood, "2 * x[i]", "x[i] + x[n - 1 - i] - x[n - 1 - i] + x[i]");
  const Verdict verdict = judge().judge(submission, twice());
  INFO(verdict.reason);
  REQUIRE(verdict.is_accepted());
  CHECK(verdict.cases.size() >= 4);
  REQUIRE(verdict.timing);
  CHECK(verdict.timing->median > 0);
  CHECK(verdict.timing->interval.low <= verdict.timing->median);
  REQUIRE(verdict.speedup);
  if (verdict.timing->is_counted) CHECK(*verdict.speedup > 1);
  CHECK(verdict.seconds >= verdict.compile_seconds);
  const auto json = nlohmann::json::parse(verdict.to_json());
  CHECK(json["status"] == "accepted");
  CHECK(json["timing"]["interval"].size() == 2);
  CHECK(json["cases"].size() == verdict.cases.size());
}

TEST_CASE("judge: each status has its reason") {
  const auto status = [](const std::string& source, const Task& task = twice()) {
    Submission submission = text(source);
    submission.timeout = std::chrono::milliseconds(2000);
    const Verdict verdict = judge().judge(submission, task);
    CHECK(verdict.reason.empty() == verdict.is_accepted());
    return std::string(verdict_status_name(verdict.status));
  };
  CHECK(status(with(kGood, "2 *", "3 *")) == "wrong");
  CHECK(status(with(kGood, "if (i < n)", "if (i <= n)")) == "finding");
  CHECK(status(with(kGood, "int n", "long n")) == "compile");
  CHECK(status("nonsense") == "compile");
  CHECK(status(with(kGood, "if (i < n)", "while (n > 0) if (i < n)")) == "timeout");
  CHECK(status(with(kGood, "if (i < n)", "if (i < n && clock64() != 0)")) == "cheating");
  CHECK(status(with(kGood, "y[i] = 2 * x[i];",
                    "{ y[i] = 2 * x[i]; const_cast<float*>(x)[i] = -1; }")) == "cheating");
  Task impossible = twice();
  impossible.bytes = [](const HostValues&) { return 1e15; };
  CHECK(status(kGood, impossible) == "impossible");
  CHECK_MESSAGE(status(kGood) == "accepted", "after all that");
  CHECK(judge().losses() >= 1);
}

TEST_CASE("judge: a task that cannot judge is an error, and not the text's fault") {
  const auto refuses = [](const std::function<void(Task&)>& change, const Task& from = twice()) {
    Task task = from;
    change(task);
    CHECK_THROWS_AS(judge().judge(text(kGood), task), InvalidArgument);
  };
  refuses([](Task& task) { task.entry.clear(); });
  refuses([](Task& task) { task.inputs = {}; });
  refuses([](Task& task) { task.reference = {}; });
  refuses([](Task& task) { task.cases = 0; });
  refuses([](Task& task) { task.timed_case = 4; });
  refuses([](Task& task) { task.rtol = -1; });
  refuses([](Task& task) { task.allow = {"files"}; });
  refuses([](Task& task) { task.options.include_dirs = {"/"}; });
  refuses([](Task& task) { task.signature = "const flaot* x"; });
  refuses([](Task& task) { task.reference = [](const HostValues&) { return Expected{}; }; });
  refuses([](Task& task) {
    task.reference = [](const HostValues& inputs) { return Expected(inputs.size()); };
  });
  refuses([](Task& task) {
    task.reference = [](const HostValues&) {
      const HostValue two = HostValue::from(ScalarType::float64, std::vector<double>{1, 2});
      return Expected{std::nullopt, two, std::nullopt};
    };
  });
  refuses([](Task& task) {
    const auto calls = std::make_shared<int>(0);
    task.reference = [calls](const HostValues& inputs) {
      std::vector<double> y(static_cast<std::size_t>(inputs[1].elements()), ++*calls);
      return Expected{std::nullopt, HostValue::from(ScalarType::float64, y), std::nullopt};
    };
  });
  CHECK_THROWS_AS(Judge({.workers = 0, .device = {}}), InvalidArgument);
}

TEST_CASE("judge: an exception of a task's function comes out as it is") {
  Task task = twice();
  task.inputs = [](std::uint64_t, int) -> HostValues { throw std::out_of_range("mine"); };
  CHECK_THROWS_AS(judge().judge(text(kGood), task), std::out_of_range);
}

TEST_CASE("judge: many threads on few workers") {
  Judge few({.workers = 2, .device = {}});
  const Submission submission = text(kGood);
  std::vector<std::thread> threads;
  std::atomic<int> accepted = 0;
  for (int i = 0; i < 6; ++i) {
    threads.emplace_back([&] { accepted += few.judge(submission, twice()).is_accepted() ? 1 : 0; });
  }
  for (std::thread& thread : threads) thread.join();
  CHECK(accepted == 6);
  CHECK(few.losses() == 0);
}

TEST_CASE("judge: the lines of a kernel with what they cost") {
  const sim::LineProfile profile = judge().profile(text(kGood), twice(), 3);
  CHECK(profile.total().global_loads > 0);
  CHECK(profile.total().global_stores > 0);
  CHECK_THROWS_AS(judge().profile(text("nonsense"), twice(), 0), InvalidArgument);
}
