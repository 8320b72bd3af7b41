// One template kernel, instantiated by name expressions.
#include "kernwright.h"

#include <cstdio>
#include <vector>

namespace kw = kernwright;

namespace {

constexpr const char* kSource = R"(
template <typename T, int N>
__global__ void scale(const T* in, T* out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) out[i] = in[i] * T(N);
})";

template <typename T>
void check_scale(kw::Device& device, const kw::Program& program, const char* name) {
  const int n = 1000;
  std::vector<T> host(n), result(n);
  for (int i = 0; i < n; ++i) host[i] = static_cast<T>(i);
  const auto in = kw::Array::from_host(device, host.data(), {n}, kw::scalar_type_of<T>());
  const auto out = kw::Array::empty(device, {n}, kw::scalar_type_of<T>());
  const kw::Kernel kernel = program.kernel(device, name);
  kw::launch(kernel, {.grid = {(n + 255) / 256}, .block = {256}}, in, out, n);
  out.to_host(result.data());
  for (int i = 0; i < n; ++i) {
    if (result[i] != host[i] * T(3)) throw kw::Error(std::string(name) + " is wrong");
  }
  std::printf("%s: right\n", kernel.signature().to_string().c_str());
}

}  // namespace

int main() try {
  kw::Device& device = kw::initialise();
  const kw::Program program(kw::Source{.text = kSource});
  check_scale<float>(device, program, "scale<float, 3>");
  check_scale<long long>(device, program, "scale<long long, 3>");
  check_scale<double>(device, program, "scale<double, 3>");
  return 0;
} catch (const std::exception& error) {
  std::fprintf(stderr, "%s\n", error.what());
  return 1;
}
