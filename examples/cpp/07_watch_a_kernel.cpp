// The instructions of one thread with their values, and the cost of each line: simulated device.
#include "kernwright.h"
#include "sim/observe/source_text.h"

#include <cmath>
#include <cstdio>
#include <vector>

namespace kw = kernwright;

int main() try {
  kw::initialise();
  kw::Device& device = kw::Runtime::get().device("sim");
  const char* const text = R"(
__global__ void length(const float* x, float* y, int n) {
    int row = blockIdx.x * blockDim.x + threadIdx.x;
    float sum = 0;
    for (int column = 0; column < n; ++column)
        sum += x[row * n + column] * x[row * n + column];
    y[row] = sqrtf(sum);
})";
  const kw::LazyKernel length = kw::kernel(text);
  std::vector<float> host(128);
  for (std::size_t i = 0; i < host.size(); ++i) host[i] = static_cast<float>(i);
  const auto x = kw::Array::from_host(device, host.data(), {128}, kw::ScalarType::float32);
  const auto y = kw::Array::empty(device, {64}, kw::ScalarType::float32);

  const kw::Kernel loaded = length.on(device);
  const kw::sim::TraceScope scope(
      {.function = loaded.handle(), .block = {1, 0, 0}, .thread = {3, 0, 0}});
  const kw::sim::LineProfileScope lines;
  kw::launch(loaded, {.grid = {2}, .block = {32}}, x, y, 2);
  device.synchronize();
  const kw::sim::Trace trace = scope.trace();
  kw::sim::SourceText source;
  source.add("kernel.cu", text);
  std::printf("%s", trace.to_text(source).c_str());

  const kw::sim::LineProfile profile = lines.profile();
  std::printf("%s", profile.to_text(source).c_str());
  const kw::sim::LineCounts total = profile.total();
  const bool every_other_word = total.global_loads == 4 && total.global_bytes == (128 + 64) * 4 &&
                                total.global_sectors == 4 * 8 + 2 * 4;

  float stored = 0;
  for (const kw::sim::TraceStep& step : trace.steps) {
    for (const kw::sim::TraceAccess& access : step.accesses) {
      if (access.what == "store")
        stored = std::stof(kw::sim::trace_value(access.type, access.after.at(0)));
    }
  }
  return std::abs(stored - std::hypot(70.0f, 71.0f)) < 1e-4f && every_other_word ? 0 : 1;
} catch (const std::exception& error) {
  std::fprintf(stderr, "%s\n", error.what());
  return 1;
}
