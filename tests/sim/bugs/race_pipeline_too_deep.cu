// A pipeline of two stages fills two tiles ahead where there is room for one.
// launch: grid=1 block=64 args=f32*256:iota,f32*64:zeros
#include <cuda_pipeline.h>
#ifdef FIXED
constexpr int kTiles = 2;
#else
constexpr int kTiles = 1;
#endif
extern "C" __global__ void bug(const float* x, float* y) {
  __shared__ float tile[kTiles][64];
  int i = threadIdx.x;
  float sum = 0;
  __pipeline_memcpy_async(&tile[0][i], x + i, 4);  // FINDS race
  __pipeline_commit();
#pragma unroll 1
  for (int t = 0; t < 4; ++t) {
    int n = t + 1;
    if (n < 4) __pipeline_memcpy_async(&tile[n % kTiles][i], x + n * 64 + i, 4);  // FINDS race
    __pipeline_commit();
    __pipeline_wait_prior(1);
    sum += tile[t % kTiles][i];  // FINDS race
  }
  y[i] = sum;
}
