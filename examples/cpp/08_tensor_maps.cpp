// Tensor copies (TMA) through tensor maps: tiles in and out of shared memory, edges included.
#include "kernwright.h"

#include <cstdio>
#include <cstdlib>
#include <numeric>
#include <vector>

namespace kw = kernwright;

namespace {

constexpr const char* kScaleTiles = R"(
struct alignas(64) CUtensorMap { unsigned long long opaque[16]; };

__device__ unsigned shared_address(const void* p) { return (unsigned)__cvta_generic_to_shared(p); }

__global__ void scale_tiles(const __grid_constant__ CUtensorMap in,
                            const __grid_constant__ CUtensorMap out, float a) {
    __shared__ alignas(128) float tile[32 * 32];
    __shared__ unsigned long long barrier;
    const unsigned to = shared_address(tile), bar = shared_address(&barrier);
    const int column = blockIdx.x * 32, row = blockIdx.y * 32;
    if (threadIdx.x == 0) {
        asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;\n"
                     "fence.mbarrier_init.release.cluster;" :: "r"(bar) : "memory");
        asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;"
                     :: "r"(bar), "r"((unsigned)sizeof tile) : "memory");
        asm volatile("cp.async.bulk.tensor.2d.shared::cluster.global.tile"
                     ".mbarrier::complete_tx::bytes [%0], [%1, {%2, %3}], [%4];"
                     :: "r"(to), "l"(&in), "r"(column), "r"(row), "r"(bar) : "memory");
    }
    __syncthreads();
    asm volatile("{\n.reg .pred done;\nAGAIN:\n"
                 "mbarrier.try_wait.parity.shared::cta.b64 done, [%0], 0;\n"
                 "@!done bra AGAIN;\n}" :: "r"(bar) : "memory");
    for (int i = threadIdx.x; i < 32 * 32; i += blockDim.x) tile[i] *= a;
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");  // before a tensor copy reads them
    __syncthreads();
    if (threadIdx.x == 0) {
        asm volatile("cp.async.bulk.tensor.2d.global.shared::cta.tile.bulk_group"
                     " [%0, {%1, %2}], [%3];\n"
                     "cp.async.bulk.commit_group;\n"
                     "cp.async.bulk.wait_group 0;"
                     :: "l"(&out), "r"(column), "r"(row), "r"(to) : "memory");
    }
})";

kw::Device& device_with_tensor_copies() {
  setenv("KERNWRIGHT_SIM_CAPABILITY", "9.0", 0);  // the first with tensor copies
  kw::Device& device = kw::initialise();
  return device.capabilities().tma ? device : kw::Runtime::get().device("sim");
}

}  // namespace

int main() try {
  kw::Device& device = device_with_tensor_copies();
  const kw::LazyKernel scale_tiles = kw::kernel(kScaleTiles);
  const int rows = 100, columns = 200;
  std::vector<float> host(rows * columns), result(host.size());
  std::iota(host.begin(), host.end(), 0.0f);
  const auto x =
      kw::Array::from_host(device, host.data(), {rows, columns}, kw::ScalarType::float32);
  const auto y =
      kw::Array::from_host(device, result.data(), {rows, columns}, kw::ScalarType::float32);

  const std::vector<std::uint32_t> box{32, 32};
  const auto in = kw::TensorMap::tiled(device, kw::tensor_layout(x), box);
  const auto out = kw::TensorMap::tiled(device, kw::tensor_layout(y), box);
  kw::launch(scale_tiles.on(device), {.grid = {7, 4}, .block = {128}}, in, out, 3.0f);
  y.to_host(result.data());
  for (std::size_t i = 0; i < host.size(); ++i) {
    if (result[i] != 3 * host[i]) throw kw::Error("an element is wrong");
  }
  std::printf("scaled in 28 tiles of %d bytes: %s\n", static_cast<int>(in.box_bytes()),
              in.identify().c_str());

  try {
    kw::TensorMap::tiled(device, kw::tensor_layout(x), std::vector<std::uint32_t>{32, 30});
    throw kw::Error("rows of 120 bytes were accepted");
  } catch (const kw::InvalidArgument& error) {
    std::printf("%s\n", error.what());
  }
  return 0;
} catch (const std::exception& error) {
  std::fprintf(stderr, "%s\n", error.what());
  return 1;
}
