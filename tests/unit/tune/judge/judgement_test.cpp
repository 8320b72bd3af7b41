// The way of a judgement on a GPU, with a second simulated device in its place: timed series, bands
// around buffers, what is found there alone.
#include "tune/judge/judgement.h"

#include <doctest/doctest.h>

#include "driver/nvrtc_loader.h"
#include "tune/judge/series_timing.h"
#include "unit/site_packages.h"

using namespace kernwright;

namespace {

constexpr const char* kAdd = R"(
__device__ int launches;
__global__ void add(const int* x, int* y, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] = x[i] + 1;
})";

Task add_one() {
  Task task;
  task.entry = "add";
  task.cases = 3;
  task.inputs = [](std::uint64_t seed, int number) {
    std::vector<int> x(static_cast<std::size_t>(50 + 100 * number));
    for (std::size_t i = 0; i < x.size(); ++i) x[i] = static_cast<int>(derived_seed(seed, i));
    const auto n = static_cast<std::int64_t>(x.size());
    return HostValues{HostValue::from(ScalarType::int32, x),
                      HostValue::from(ScalarType::int32, std::vector<int>(x.size())),
                      HostValue::make_integer(n)};
  };
  task.reference = [](const HostValues& inputs) {
    HostValue y = inputs[0];
    auto* begin = reinterpret_cast<int*>(y.bytes.data());
    for (std::int64_t i = 0; i < y.elements(); ++i) begin[i] += 1;
    return Expected{std::nullopt, y, std::nullopt};
  };
  return task;
}

RemoteDeviceOptions simulated(const char* seed = "") {
  RemoteDeviceOptions options;
  options.worker.command = {TEST_TUNE_WORKER};
  options.worker.environment = {"KERNWRIGHT_DEVICE=sim"};
  // Work then waits in its stream, as on a GPU; and it is of another compute capability.
  if (*seed != '\0') {
    options.worker.environment.push_back(std::string("KERNWRIGHT_SIM_SEED=") + seed);
    options.worker.environment.push_back("KERNWRIGHT_SIM_CAPABILITY=9.0");
  }
  return options;
}

Verdict judged(const std::string& text, const Task& task = add_one(), bool with_baseline = false) {
  set_site_packages({testing::site_packages()});
  static RemoteDevice& first = *new RemoteDevice(simulated());
  static RemoteDevice& second = *new RemoteDevice(simulated("1"));
  static std::mutex use;
  const DeviceFacts facts = second.facts();
  const JudgeDevices devices{first, &second, &facts, use};
  Submission submission;
  submission.source.text = text;
  submission.timeout = std::chrono::milliseconds(20000);
  if (with_baseline) {
    submission.baseline.emplace();
    submission.baseline->text = kAdd;
  }
  return Judgement(devices, submission, task).judge();
}

std::string edited(std::string source, const std::string& from, const std::string& to) {
  return source.replace(source.find(from), from.size(), to);
}

}  // namespace

TEST_CASE("judgement: series of a right kernel and its baseline") {
  const Verdict verdict = judged(kAdd, add_one(), true);
  INFO(verdict.reason);
  REQUIRE(verdict.is_accepted());
  CHECK(verdict.cases.size() == 6);
  REQUIRE(verdict.timing);
  CHECK_FALSE(verdict.timing->is_counted);
  CHECK(verdict.timing->unit == "ms");
  CHECK(verdict.timing->samples.size() >= 10);
  CHECK(verdict.timing->case_number == 2);
  REQUIRE(verdict.baseline);
  CHECK(verdict.baseline->samples.size() >= 10);
}

TEST_CASE("judgement: a kernel that adds to what its output holds is timed on given contents") {
  Task task = add_one();
  task.signature = "const int* x, int* y, int n";
  const Verdict verdict =
      judged(edited(kAdd, "y[i] = x[i] + 1", "atomicAdd(y + i, x[i] + 1)"), task);
  INFO(verdict.reason);
  CHECK(verdict.is_accepted());
}

TEST_CASE("judgement: state that shows in the second launch of the largest case") {
  const std::string late =
      edited(kAdd, "if (i < n) y",
             "if (n == 250 && atomicAdd(&launches, 1) >= 250) return;\n  if (i < n) y");
  const Verdict verdict = judged(late);
  CHECK(verdict.status == VerdictStatus::cheating);
  CHECK(verdict.reason.find("earlier launches") != std::string::npos);
}

TEST_CASE("judgement: no timed launch finds anything of those before") {
  // The second launch of a module would leave the largest case to the third one. Each timed launch
  // is the first of its module, and does its own work.
  const std::string leaves = R"(
__device__ int launches;
__device__ const int* late_x;
__device__ int* late_y;
__global__ void add(const int* x, int* y, int n) {
  int i = threadIdx.x, number = launches;
  const int* from = late_x;
  int* to = late_y;
  __syncthreads();
  if (i == 0) launches = number + 1;
  if (n == 250 && number == 1) {
    if (i == 0) late_x = x, late_y = y;
    return;
  }
  if (number == 2 && to != nullptr && i < 250) to[i] = from[i] + 1;
  if (i < n) y[i] = x[i] + 1;
})";
  const Verdict verdict = judged(leaves);
  INFO(verdict.reason);
  CHECK(verdict.is_accepted());
}

TEST_CASE("judgement: a text for the GPU's compute capability alone is judged there") {
  const std::string own = edited(
      kAdd, "__device__ int", "#if __CUDA_ARCH__ < 900\n#error not here\n#endif\n__device__ int");
  const Verdict verdict = judged(own);
  INFO(verdict.reason);
  CHECK(verdict.is_accepted());
  CHECK(verdict.cases.size() == 3);
  const Verdict clock = judged(edited(own, "x[i] + 1", "x[i] + 1 + (clock64() == 0)"));
  CHECK(clock.status == VerdictStatus::cheating);
}

TEST_CASE("series timing: median and interval of samples") {
  const JudgeTiming timing = summarize_timing({3, 1, 2, 5, 4}, 7, false);
  CHECK(timing.median == 3);
  CHECK(timing.interval.low == 1);
  CHECK(timing.interval.high == 5);
  CHECK(timing.case_number == 7);
  CHECK(timing.unit == "ms");
  CHECK(summarize_timing({1}, 0, true).unit == "instructions + transactions");
}
