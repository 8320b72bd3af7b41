// The least cost of a launch: the driver's own call in a loop, and our C++ API, in one run.
#include "bench/rounded.h"
#include "core/device.h"
#include "core/kernel.h"
#include "core/runtime.h"
#include "jit/program.h"
#include "memory/buffer.h"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <functional>
#include <vector>

namespace kw = kernwright;

namespace {

constexpr int kCalls = 2000;
constexpr int kRounds = 31;

using Clock = std::chrono::steady_clock;

double loop_us(const std::function<void()>& call) {
  const auto start = Clock::now();
  for (int i = 0; i < kCalls; ++i) call();
  return std::chrono::duration<double, std::micro>(Clock::now() - start).count() / kCalls;
}

double median(std::vector<double> samples) {
  std::sort(samples.begin(), samples.end());
  return samples[samples.size() / 2];
}

/// As in harness.alternate(): "times" is the median of the rounds' ratios to `reference`.
nlohmann::ordered_json summary(const std::vector<double>& samples,
                               const std::vector<double>& reference) {
  std::vector<double> ratios;
  for (std::size_t i = 0; i < samples.size(); ++i) ratios.push_back(samples[i] / reference[i]);
  return {{"min", rounded(*std::min_element(samples.begin(), samples.end()))},
          {"median", rounded(median(samples))},
          {"times", rounded(median(ratios))}};
}

}  // namespace

int main() {
  kw::Device& device = kw::Runtime::get().device("cuda");
  const kw::ContextGuard guard(device);
  const kw::LazyKernel lazy = kw::kernel(
      "extern \"C\" __global__ void axpy(float a, const float* x, float* y, int n) {\n"
      "  int i = blockIdx.x * blockDim.x + threadIdx.x;\n"
      "  if (i < n) y[i] += a * x[i];\n"
      "}\n");
  const kw::Kernel kernel = lazy.on(device);
  const kw::Stream stream = kw::Stream::create(device);
  const kw::Buffer x(kw::default_resource(device), 4096, stream);
  const kw::Buffer y(kw::default_resource(device), 4096, stream);
  float a = 2;
  int n = 1024;
  kw::CUdeviceptr px = x.address(), py = y.address();
  void* arguments[] = {&a, &px, &py, &n};
  const kw::DriverApi& driver = device.driver();
  const kw::LaunchConfig config{.grid = {4, 1, 1}, .block = {256, 1, 1}, .stream = stream};

  std::vector<double> raw, ours;
  for (int round = 0; round < kRounds; ++round) {
    raw.push_back(loop_us([&] {
      driver.cuLaunchKernel(kernel.handle(), 4, 1, 1, 256, 1, 1, 0, stream.handle(), arguments,
                            nullptr);
    }));
    stream.synchronize();
    ours.push_back(loop_us([&] { kernel.launch(config, arguments); }));
    stream.synchronize();
  }
  const nlohmann::ordered_json result{{"cuLaunchKernel loop", summary(raw, raw)},
                                      {"kernwright C++ API", summary(ours, raw)}};
  std::puts(result.dump().c_str());
  return 0;
}
