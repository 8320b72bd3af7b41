// Streams ordered by an event, a graph with changing arguments, memory from a pool.
#include "kernwright.h"

#include <cstdio>
#include <vector>

namespace kw = kernwright;

namespace {

constexpr int kCount = 1 << 20;
constexpr unsigned kBlocks = (kCount + 255) / 256;

void expect(const kw::Array& array, float value) {
  std::vector<float> host(kCount);
  array.to_host(host.data());
  for (const float element : host) {
    if (element != value) throw kw::Error("an element is wrong");
  }
}

}  // namespace

int main() try {
  kw::Device& device = kw::initialise();
  const kw::LazyKernel scale_text = kw::kernel(R"(
__global__ void scale(float* x, float a, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) x[i] *= a;
})");
  const kw::Kernel scale = scale_text.on(device);
  const std::vector<float> ones(kCount, 1.0f);
  const auto x = kw::Array::from_host(device, ones.data(), {kCount}, kw::ScalarType::float32);
  const auto y = kw::Array::from_host(device, ones.data(), {kCount}, kw::ScalarType::float32);
  const auto on = [](const kw::Stream& stream) {
    return kw::LaunchConfig{.grid = {kBlocks}, .block = {256}, .stream = stream};
  };

  // Two streams run independently; an event makes one wait for the other.
  const kw::Stream first = kw::Stream::create(device);
  const kw::Stream second = kw::Stream::create(device, -1);
  kw::launch(scale, on(first), x, 2.0f, kCount);
  second.wait(first.record());
  kw::launch(scale, on(second), x, 3.0f, kCount);
  second.synchronize();
  expect(x, 6);

  // Work is recorded once and launched many times.
  kw::Graph graph(device);
  graph.capture(first, [&] {
    kw::launch(scale, on(first), x, 2.0f, kCount);
    kw::launch(scale, on(first), y, 2.0f, kCount);
  });
  for (int i = 0; i < 3; ++i) graph.launch(first);
  kw::CUdeviceptr address = y.address();
  float factor = 0.5f;
  int count = kCount;
  void* const arguments[] = {&address, &factor, &count};
  graph.update(graph.nodes().at(1), arguments);
  graph.launch(first);
  first.synchronize();
  expect(x, 6 * 16);
  expect(y, 4);
  std::printf("%zu nodes, launched 4 times\n", graph.node_count());

  // Memory from a pool with a limit, and the pool's statistics.
  const auto pool =
      std::make_shared<kw::PoolResource>(std::make_shared<kw::DeviceResource>(device));
  const auto limited = std::make_shared<kw::LimitingAdaptor>(pool, std::size_t{64} << 20);
  for (int i = 0; i < 100; ++i) kw::Buffer(limited, 4 << 20, first);
  try {
    const kw::Buffer refused(limited, std::size_t{256} << 20, first);
  } catch (const kw::OutOfMemory& error) {
    std::printf("%s\n", error.what());
  }
  const kw::MemoryStats stats = pool->stats();
  std::printf("%llu of %llu allocations from what the pool had\n",
              static_cast<unsigned long long>(stats.hits),
              static_cast<unsigned long long>(stats.hits + stats.misses));
  return 0;
} catch (const std::exception& error) {
  std::fprintf(stderr, "%s\n", error.what());
  return 1;
}
