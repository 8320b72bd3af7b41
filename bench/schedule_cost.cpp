// The scheduler's own microseconds: a driver whose launches and events take no time, so that only
// the host's work is left. Prints JSON: a plain launch, tasks of it, and calls of the driver a
// task.
#include "bench/rounded.h"
#include "core/device.h"
#include "core/device_registry.h"
#include "core/kernel.h"
#include "core/module.h"
#include "schedule/scheduler.h"
#include "sim/device.h"
#include "tests/unit/core/saxpy.h"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <functional>
#include <utility>
#include <vector>

using namespace kernwright;
using namespace kernwright::schedule;

namespace {

constexpr int kCalls = 5000;
constexpr int kRounds = 15;

std::atomic<long> launches, records, queries, times, waits;

/// The simulated device without execution: all work is done when it is queued.
const DriverApi& free_driver() {
  static const DriverApi api = [] {
    DriverApi made = sim::driver_api();
    made.cuLaunchKernelEx = [](const CUlaunchConfig*, CUfunction, void**, void**) {
      ++launches;
      return CUDA_SUCCESS;
    };
    made.cuEventRecord = [](CUevent, CUstream) {
      ++records;
      return CUDA_SUCCESS;
    };
    made.cuEventQuery = [](CUevent) {
      ++queries;
      return CUDA_SUCCESS;
    };
    made.cuStreamQuery = [](CUstream) {
      ++queries;
      return CUDA_SUCCESS;
    };
    made.cuEventElapsedTime = [](float* milliseconds, CUevent, CUevent) {
      ++times;
      *milliseconds = 0.001F;
      return CUDA_SUCCESS;
    };
    made.cuStreamWaitEvent = [](CUstream, CUevent, unsigned) {
      ++waits;
      return CUDA_SUCCESS;
    };
    return made;
  }();
  return api;
}

nlohmann::ordered_json measure(const std::function<void()>& call,
                               const std::function<void()>& settle) {
  std::vector<double> samples;
  for (auto* const count : {&launches, &records, &queries, &times, &waits}) *count = 0;
  for (int round = 0; round < kRounds; ++round) {
    const auto start = std::chrono::steady_clock::now();
    for (int i = 0; i < kCalls; ++i) call();
    const auto took = std::chrono::steady_clock::now() - start;
    samples.push_back(std::chrono::duration<double, std::micro>(took).count() / kCalls);
    settle();
  }
  std::sort(samples.begin(), samples.end());
  const double all = double{kCalls} * kRounds;
  const auto each = [&](long count) { return rounded(static_cast<double>(count) / all); };
  return {{"min_us", rounded(samples.front())},
          {"median_us", rounded(samples[samples.size() / 2])},
          {"launches", each(launches)},
          {"records", each(records)},
          {"queries", each(queries)},
          {"elapsed", each(times)},
          {"waits", each(waits)}};
}

}  // namespace

int main() {
  DeviceRegistry::Options options;
  options.sim = &free_driver;
  options.wanted = "sim";
  DeviceRegistry registry(std::move(options));
  Device& device = registry.by_index(0);
  const Kernel kernel(Module::load(device, testing::kSaxpyPtx), testing::saxpy_signature());
  float a = 0;
  int n = 0;
  CUdeviceptr none = 0;
  void* arguments[] = {&a, &none, &none, &n};
  const auto launch = [&](const Stream& stream) {
    kernel.launch({.grid = {1}, .block = {32}, .stream = stream}, arguments);
  };
  const Stream stream = Stream::create(device);
  Scheduler scheduler(device, {.memory = 1 << 30});
  const auto task = [&](TaskSpec spec) {
    scheduler.submit(std::move(spec), make_work(launch), stream);
  };
  const auto settle = [&] { scheduler.drain(); };
  nlohmann::ordered_json found;
  found["plain launch"] = measure([&] { launch(stream); }, settle);
  found["guaranteed"] = measure([&] { task({}); }, settle);
  found["guaranteed, memory"] = measure([&] { task({.memory = {{1024, 1024}}}); }, settle);
  found["burstable"] = measure([&] { task({.qos = Qos::burstable}); }, settle);
  found["a share"] = measure([&] { task({.share = {{0.5, 1}}, .model = "m"}); }, settle);
  std::puts(found.dump(1).c_str());
  return 0;
}
