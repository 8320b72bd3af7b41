// A kernel from a .cu file, embedded at build time, on any device.
#include <kernwright.h>

#include <cmath>
#include <cstdio>
#include <exception>
#include <vector>

#include "kernels/blur.cu.h"

namespace kw = kernwright;

int main() try {
  kw::Device& device = kw::initialise();
  const kw::LazyKernel blur = kw::kernel(kernels::blur_cu);

  const int n = 1000;
  std::vector<float> values(n), result(n);
  for (int i = 0; i < n; ++i) values[i] = static_cast<float>(i * i % 97);
  const auto in = kw::Array::from_host(device, values.data(), {n}, kw::ScalarType::float32);
  const auto out = kw::Array::from_host(device, result.data(), {n}, kw::ScalarType::float32);
  kw::launch(blur.on(device), {.grid = {(n + 255) / 256}, .block = {256}}, in, out, n);
  out.to_host(result.data());

  for (int i = 0; i < n; ++i) {
    const float left = values[i > 0 ? i - 1 : 0], right = values[i + 1 < n ? i + 1 : n - 1];
    if (std::fabs(result[i] - (left + values[i] + right) / 3) > 1e-5f) {
      throw kw::Error("blur is wrong");
    }
  }
  std::printf("%s on %s: right\n", blur.on(device).signature().to_string().c_str(),
              device.identify().c_str());
  return 0;
} catch (const std::exception& error) {
  std::fprintf(stderr, "%s\n", error.what());
  return 1;
}
