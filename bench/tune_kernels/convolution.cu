// A convolution of an image with a border; the parameters are those of the public space.
#if use_padding
#define PADDING 1
#else
#define PADDING 0
#endif
#if read_only
#define LOAD(place) __ldg(place)
#else
#define LOAD(place) (*(place))
#endif

extern "C" __global__ void convolution(float* output, const float* input, const float* filter,
                                       int width, int height) {
  const int x0 = blockIdx.x * block_size_x * tile_size_x;
  const int y0 = blockIdx.y * block_size_y * tile_size_y;
  const int pitch = width + filter_width - 1;
#if use_shmem
  constexpr int kWide = block_size_x * tile_size_x + filter_width - 1;
  constexpr int kHigh = block_size_y * tile_size_y + filter_height - 1;
  __shared__ float part[kHigh][kWide + PADDING];
  for (int j = threadIdx.y; j < kHigh; j += block_size_y)
    for (int i = threadIdx.x; i < kWide; i += block_size_x)
      if (y0 + j < height + filter_height - 1 && x0 + i < pitch)
        part[j][i] = LOAD(&input[(y0 + j) * pitch + x0 + i]);
  __syncthreads();
#endif
  float sum[tile_size_y][tile_size_x] = {};
#pragma unroll 3
  for (int j = 0; j < filter_height; ++j) {
#pragma unroll
    for (int i = 0; i < filter_width; ++i) {
      const float weight = LOAD(&filter[j * filter_width + i]);
#pragma unroll
      for (int b = 0; b < tile_size_y; ++b) {
#pragma unroll
        for (int a = 0; a < tile_size_x; ++a) {
          const int x = threadIdx.x + a * block_size_x, y = threadIdx.y + b * block_size_y;
#if use_shmem
          sum[b][a] += weight * part[y + j][x + i];
#else
          const int row = min(y0 + y, height - 1), column = min(x0 + x, width - 1);
          sum[b][a] += weight * LOAD(&input[(row + j) * pitch + column + i]);
#endif
        }
      }
    }
  }
#pragma unroll
  for (int b = 0; b < tile_size_y; ++b) {
#pragma unroll
    for (int a = 0; a < tile_size_x; ++a) {
      const int x = x0 + threadIdx.x + a * block_size_x, y = y0 + threadIdx.y + b * block_size_y;
      if (x < width && y < height) output[y * width + x] = sum[b][a];
    }
  }
}
