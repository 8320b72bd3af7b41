// Matrix product with tiles in shared memory.
#include "kernwright.h"

#include <cmath>
#include <cstdio>
#include <random>
#include <vector>

namespace kw = kernwright;

namespace {

constexpr unsigned kTile = 16;
constexpr const char* kSource = R"(
__global__ void sgemm(const float* a, const float* b, float* c, int m, int n, int k) {
    __shared__ float ta[TILE][TILE], tb[TILE][TILE];
    int x = threadIdx.x, y = threadIdx.y;
    int column = blockIdx.x * TILE + x, row = blockIdx.y * TILE + y;
    float sum = 0;
    for (int first = 0; first < k; first += TILE) {
        ta[y][x] = row < m && first + x < k ? a[row * k + first + x] : 0.0f;
        tb[y][x] = first + y < k && column < n ? b[(first + y) * n + column] : 0.0f;
        __syncthreads();
        for (int i = 0; i < TILE; ++i) sum += ta[y][i] * tb[i][x];
        __syncthreads();
    }
    if (row < m && column < n) c[row * n + column] = sum;
})";

/// ||c - a b|| / ||a b|| with the product in double.
double relative_error(const std::vector<float>& a, const std::vector<float>& b,
                      const std::vector<float>& c, int m, int n, int k) {
  double difference = 0, norm = 0;
  for (int i = 0; i < m; ++i) {
    for (int j = 0; j < n; ++j) {
      double sum = 0;
      for (int l = 0; l < k; ++l) sum += double{a[i * k + l]} * b[l * n + j];
      difference += (c[i * n + j] - sum) * (c[i * n + j] - sum);
      norm += sum * sum;
    }
  }
  return std::sqrt(difference / norm);
}

}  // namespace

int main() try {
  kw::Device& device = kw::initialise();
  const int m = 130, n = 75, k = 200;
  std::mt19937 random(1);
  std::normal_distribution<float> normal;
  std::vector<float> a(m * k), b(k * n), c(m * n);
  for (float& value : a) value = normal(random);
  for (float& value : b) value = normal(random);

  const auto da = kw::Array::from_host(device, a.data(), {m, k}, kw::ScalarType::float32);
  const auto db = kw::Array::from_host(device, b.data(), {k, n}, kw::ScalarType::float32);
  const auto dc = kw::Array::empty(device, {m, n}, kw::ScalarType::float32);
  const kw::LazyKernel sgemm = kw::kernel(kSource, "sgemm", {.defines = {{"TILE", "16"}}});
  const kw::LaunchConfig config{.grid = {(n + kTile - 1) / kTile, (m + kTile - 1) / kTile},
                                .block = {kTile, kTile}};
  kw::launch(sgemm.on(device), config, da, db, dc, m, n, k);
  dc.to_host(c.data());

  const double error = relative_error(a, b, c, m, n, k);
  std::printf("(%d, %d) x (%d, %d): relative error %.1e\n", m, k, k, n, error);
  return error < 1e-6 ? 0 : 1;
} catch (const std::exception& error) {
  std::fprintf(stderr, "%s\n", error.what());
  return 1;
}
