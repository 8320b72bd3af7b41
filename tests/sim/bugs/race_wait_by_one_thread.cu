// Every thread copies, one of them waits, and the barrier tells the others of that alone.
// launch: grid=1 block=64 args=f32*64:iota,f32*64:zeros
#include <cuda_pipeline.h>
extern "C" __global__ void bug(const float* x, float* y) {
  __shared__ float tile[64];
  int i = threadIdx.x;
  __pipeline_memcpy_async(&tile[i], x + i, 4);  // FINDS race
  __pipeline_commit();
#ifndef FIXED
  if (i == 0)
#endif
    __pipeline_wait_prior(0);
  __syncthreads();
  y[i] = tile[63 - i];  // FINDS race init
}
