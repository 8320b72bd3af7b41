// A stencil over the grid, from one array to another and back, with one grid.sync() a step.
// launch: grid=2 block=64 cooperative args=f32*128:iota,f32*128:zeros
#include <cooperative_groups.h>
extern "C" __global__ void bug(float* a, float* b) {
  auto grid = cooperative_groups::this_grid();
  int i = blockIdx.x * 64 + threadIdx.x;
#pragma unroll 1
  for (int t = 0; t < 3; ++t) {
    b[i] = a[i > 0 ? i - 1 : i] + a[i < 127 ? i + 1 : i];  // FINDS race
    grid.sync();
    a[i] = 0.5f * b[i];  // FINDS race
#ifdef FIXED
    grid.sync();
#endif
  }
}
