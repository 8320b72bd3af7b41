// Uses of the jit and kernels rooms: programs loaded on a device, their variables, strided copies.
#include "array/array.h"
#include "base/errors.h"
#include "driver/nvrtc_loader.h"
#include "fault/fault_fixture.h"
#include "jit/program.h"
#include "unit/site_packages.h"

#include <vector>

namespace kernwright::testing {
namespace {

constexpr const char* kSource = R"(
__device__ int offset = 5;
template <typename T> __global__ void add(T* x, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) x[i] += static_cast<T>(i + offset);
}
__global__ void twice(float* x, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) x[i] *= 2;
}
)";

void use_programs(Device& device) {
  set_site_packages({site_packages()});
  Source source;
  source.text = kSource;
  const Program program(source);
  const LazyKernel twice(program, "twice");
  const Array x =
      Array::from_host(device, std::vector<float>(32, 1).data(), {32}, ScalarType::float32);
  CUdeviceptr address = x.address();
  int n = 32;
  void* arguments[] = {&address, &n};
  program.kernel(device, "add<float>").launch({.grid = {1}, .block = {32}}, arguments);
  twice.on(device).launch({.grid = {1}, .block = {32}}, arguments);
  twice.on(device).launch({.grid = {1}, .block = {32}}, arguments);
  std::vector<float> read(32);
  x.to_host(read.data());
  require(read[0] == 24 && read[31] == 148, "three launches");
  require(program.symbol(device, "offset").size == 4, "the variable is found");
}

}  // namespace

std::vector<Scenario> jit_scenarios() {
  return {on_device("programs", Seen::as_simulated, use_programs)};
}

}  // namespace kernwright::testing
