// Finding an access out of bounds with no GPU: the simulated device checks each one.
#include "kernwright.h"

#include <cstdio>
#include <vector>

namespace kw = kernwright;

int main() try {
  kw::initialise();
  kw::Device& device = kw::Runtime::get().device("sim");
  const kw::LazyKernel shift = kw::kernel(R"(
__global__ void shift(const float* in, float* out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n)
        out[i] = in[i + 1];  // the last thread reads one element too far
})");

  const int n = 1000;
  const std::vector<float> host(n, 1.0f);
  const auto in = kw::Array::from_host(device, host.data(), {n}, kw::ScalarType::float32);
  const auto out = kw::Array::empty(device, {n}, kw::ScalarType::float32);
  try {
    kw::launch(shift.on(device), {.grid = {4}, .block = {256}}, in, out, n);
    device.synchronize();
  } catch (const kw::DeviceFault& fault) {
    std::printf("%s\n", fault.what());
    const bool found = fault.report.kind == kw::FaultKind::bounds && fault.report.line == 5 &&
                       fault.report.block[0] == 3 && fault.report.thread[0] == 231;
    return found ? 0 : 1;
  }
  std::fprintf(stderr, "the fault was not found\n");
  return 1;
} catch (const std::exception& error) {
  std::fprintf(stderr, "%s\n", error.what());
  return 1;
}
