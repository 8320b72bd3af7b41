// A kernel written as a string: compile, launch, check.
#include "kernwright.h"

#include <cstdio>
#include <numeric>
#include <vector>

namespace kw = kernwright;

int main() try {
  kw::Device& device = kw::initialise();
  const kw::LazyKernel saxpy = kw::kernel(R"(
__global__ void saxpy(float a, const float* x, float* y, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] += a * x[i];
})");

  const int n = 1 << 20;
  std::vector<float> host(n), result(n, 1.0f);
  std::iota(host.begin(), host.end(), 0.0f);
  const auto x = kw::Array::from_host(device, host.data(), {n}, kw::ScalarType::float32);
  const auto y = kw::Array::from_host(device, result.data(), {n}, kw::ScalarType::float32);
  kw::launch(saxpy.on(device), {.grid = {(n + 255) / 256}, .block = {256}}, 2.0f, x, y, n);
  y.to_host(result.data());

  for (int i = 0; i < n; ++i) {
    if (result[i] != 2 * host[i] + 1) throw kw::Error("saxpy is wrong");
  }
  std::printf("%s on %s: right\n", saxpy.on(device).signature().to_string().c_str(),
              device.identify().c_str());
  try {
    kw::launch(saxpy.on(device), {.grid = {1}, .block = {256}}, 2.0f, x, y);
  } catch (const kw::ArgumentError& error) {
    std::printf("one argument short: %s\n", error.what());
  }
  return 0;
} catch (const std::exception& error) {
  std::fprintf(stderr, "%s\n", error.what());
  return 1;
}
