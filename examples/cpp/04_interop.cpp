// Memory of another library as an argument: adopted without a copy, kept alive by its owner.
#include "kernwright.h"

#include <cstdio>
#include <memory>
#include <vector>

namespace kw = kernwright;

int main() try {
  kw::Device& device = kw::initialise();
  const kw::LazyKernel square = kw::kernel(R"(
__global__ void square(float* x, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) x[i] *= x[i];
})");

  // Stands for a tensor of another library: an address on the device and its owner.
  const int n = 1000;
  auto foreign = std::make_shared<kw::Buffer>(kw::default_resource(device), n * sizeof(float),
                                              kw::Stream::legacy(device));
  std::vector<float> host(n);
  for (int i = 0; i < n; ++i) host[i] = static_cast<float>(i);
  kw::copy_to_device(device, foreign->address(), host.data(), n * sizeof(float));

  auto view = kw::Array::adopt(device, foreign->address(), {n}, {sizeof(float)},
                               kw::ScalarType::float32, foreign);
  foreign.reset();  // the view keeps the memory
  kw::launch(square.on(device), {.grid = {(n + 255) / 256}, .block = {256}}, view, n);
  std::vector<float> result(n);
  view.to_host(result.data());
  for (int i = 0; i < n; ++i) {
    if (result[i] != host[i] * host[i]) throw kw::Error("square is wrong");
  }
  std::printf("changed in place: %s, no copy\n", view.identify().c_str());
  return 0;
} catch (const std::exception& error) {
  std::fprintf(stderr, "%s\n", error.what());
  return 1;
}
