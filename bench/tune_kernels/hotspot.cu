// Several steps of a heat equation on a chip in one launch. A tile's halo is as wide as the number
// of steps. The parameters are those of the public space.
constexpr int kHalo = temporal_tiling_factor;
constexpr int kWide = block_size_x * tile_size_x + 2 * kHalo;
constexpr int kHigh = block_size_y * tile_size_y + 2 * kHalo;

extern "C" __global__ void hotspot(float* result, const float* temperature, const float* power,
                                   int width, int height) {
  __shared__ float now[kHigh][kWide];
  __shared__ float next[kHigh][kWide];
#if sh_power
  __shared__ float heat[kHigh][kWide];
#endif
  const int x0 = blockIdx.x * block_size_x * tile_size_x - kHalo;
  const int y0 = blockIdx.y * block_size_y * tile_size_y - kHalo;
  const float step = 0.1f, across = 0.2f, down = 0.2f, out = 0.05f, ambient = 80.0f;
  for (int j = threadIdx.y; j < kHigh; j += block_size_y) {
    for (int i = threadIdx.x; i < kWide; i += block_size_x) {
      const int x = min(max(x0 + i, 0), width - 1), y = min(max(y0 + j, 0), height - 1);
      now[j][i] = temperature[y * width + x];
#if sh_power
      heat[j][i] = power[y * width + x];
#endif
    }
  }
  __syncthreads();
#pragma unroll loop_unroll_factor_t
  for (int t = 1; t <= temporal_tiling_factor; ++t) {
    for (int j = threadIdx.y + t; j < kHigh - t; j += block_size_y) {
      for (int i = threadIdx.x + t; i < kWide - t; i += block_size_x) {
        const int x = x0 + i, y = y0 + j;
        // Outside the grid, a neighbour has the value of the edge.
        const int left = x > 0 ? i - 1 : i, right = x < width - 1 ? i + 1 : i;
        const int above = y > 0 ? j - 1 : j, below = y < height - 1 ? j + 1 : j;
        const float own = now[j][i];
#if sh_power
        const float source = heat[j][i];
#else
        const float source = power[min(max(y, 0), height - 1) * width + min(max(x, 0), width - 1)];
#endif
        next[j][i] = own + step * (source + (now[j][left] + now[j][right] - 2.0f * own) * across +
                                   (now[above][i] + now[below][i] - 2.0f * own) * down +
                                   (ambient - own) * out);
      }
    }
    __syncthreads();
    for (int j = threadIdx.y + t; j < kHigh - t; j += block_size_y)
      for (int i = threadIdx.x + t; i < kWide - t; i += block_size_x) now[j][i] = next[j][i];
    __syncthreads();
  }
  for (int j = threadIdx.y; j < block_size_y * tile_size_y; j += block_size_y) {
    for (int i = threadIdx.x; i < block_size_x * tile_size_x; i += block_size_x) {
      const int x = x0 + kHalo + i, y = y0 + kHalo + j;
      if (x < width && y < height) result[y * width + x] = now[j + kHalo][i + kHalo];
    }
  }
}
