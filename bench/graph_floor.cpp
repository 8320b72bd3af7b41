// Replay of 100 kernels: a graph of the driver's own calls, and ours, in one run.
#include "bench/rounded.h"
#include "core/arguments.h"
#include "core/device.h"
#include "core/graph/graph.h"
#include "core/runtime.h"
#include "jit/program.h"
#include "memory/buffer.h"
#include "sim/device.h"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <functional>
#include <vector>

namespace kw = kernwright;

namespace {

constexpr int kKernels = 100;
constexpr int kRounds = 21;

using Clock = std::chrono::steady_clock;

/// Microseconds of one replay, from the first launch until the device is done.
double replay_us(const kw::Stream& stream, int replays, const std::function<void()>& launch) {
  stream.synchronize();
  const auto start = Clock::now();
  for (int i = 0; i < replays; ++i) launch();
  stream.synchronize();
  return std::chrono::duration<double, std::micro>(Clock::now() - start).count() / replays;
}

nlohmann::ordered_json summary(std::vector<double> samples) {
  std::sort(samples.begin(), samples.end());
  const double median = samples[samples.size() / 2];
  return {{"min", rounded(samples.front())},
          {"median", rounded(median)},
          {"per_kernel", rounded(median / kKernels)}};
}

void require(kw::Device& device, kw::CUresult result, const char* call) {
  device.check(result, call);
}

/// The same kernels captured and instantiated by plain driver calls.
struct RawGraph {
  RawGraph(kw::Device& d, const kw::Stream& stream, const std::function<void()>& record)
      : device(d) {
    const kw::DriverApi& api = device.driver();
    require(device, api.cuStreamBeginCapture(stream.handle(), kw::CU_STREAM_CAPTURE_MODE_RELAXED),
            "cuStreamBeginCapture");
    record();
    require(device, api.cuStreamEndCapture(stream.handle(), &graph), "cuStreamEndCapture");
    require(device, api.cuGraphInstantiateWithFlags(&executable, graph, 0),
            "cuGraphInstantiateWithFlags");
    require(device, api.cuGraphUpload(executable, stream.handle()), "cuGraphUpload");
  }
  ~RawGraph() {
    device.driver().cuGraphExecDestroy(executable);
    device.driver().cuGraphDestroy(graph);
  }
  RawGraph(const RawGraph&) = delete;
  RawGraph& operator=(const RawGraph&) = delete;

  kw::Device& device;
  kw::CUgraph graph = nullptr;
  kw::CUgraphExec executable = nullptr;
};

}  // namespace

int main() {
  kw::Runtime::register_sim(kw::sim::driver_api);
  kw::Device& device = kw::Runtime::get().current_device();
  const kw::ContextGuard guard(device);
  const kw::LazyKernel lazy = kw::kernel(
      "extern \"C\" __global__ void add(float* x, float v, int n) {\n"
      "  int i = blockIdx.x * blockDim.x + threadIdx.x;\n"
      "  if (i < n) x[i] += v;\n"
      "}\n");
  const kw::Kernel kernel = lazy.on(device);
  const kw::Stream stream = kw::Stream::create(device);
  const kw::Buffer x(kw::default_resource(device), 4096, stream);
  kw::fill(device, x.address(), 0, 4, 1024, stream);
  const kw::LaunchConfig config{.grid = {4, 1, 1}, .block = {256, 1, 1}, .stream = stream};
  const auto record = [&] {
    for (int i = 0; i < kKernels; ++i) {
      kw::launch(kernel, config, kw::Pointer{x.address()}, 1.0F, 1024);
    }
  };
  int replays = 0;
  nlohmann::ordered_json result;
  {
    kw::Graph ours(device);
    ours.capture(stream, record);
    const RawGraph raw(device, stream, record);
    const int each = device.is_simulated() ? 1 : 200;
    std::vector<double> raw_us, our_us, eager_us;
    for (int round = 0; round < kRounds; ++round) {
      raw_us.push_back(replay_us(stream, each, [&] {
        require(device, device.driver().cuGraphLaunch(raw.executable, stream.handle()),
                "cuGraphLaunch");
      }));
      our_us.push_back(replay_us(stream, each, [&] { ours.launch(stream); }));
      eager_us.push_back(replay_us(stream, each, record));
      replays += 3 * each;
    }
    result["driver's own graph"] = summary(raw_us);
    result["kernwright graph"] = summary(our_us);
    result["eager launches"] = summary(eager_us);
  }
  std::vector<float> values(1024);
  kw::copy_to_host(device, values.data(), x.address(), 4096, {});
  const float expected = static_cast<float>(replays) * kKernels;
  const bool right =
      std::all_of(values.begin(), values.end(), [&](float value) { return value == expected; });
  result["correct"] = right;
  result["kernels"] = kKernels;
  result["unit"] = "us per replay";
  std::puts(result.dump().c_str());
  return right ? 0 : 1;
}
