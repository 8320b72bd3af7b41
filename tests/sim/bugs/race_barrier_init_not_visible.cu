// One thread initialises a cuda::barrier, and the others arrive there at once.
// launch: grid=1 block=64 args=f32*64:iota,f32*64:zeros
#include <cuda/barrier>
extern "C" __global__ void bug(const float* x, float* y) {
  __shared__ float tile[64];
  __shared__ cuda::barrier<cuda::thread_scope_block> bar;
  int i = threadIdx.x;
  if (i == 0) init(&bar, 64);  // FINDS race
#ifdef FIXED
  __syncthreads();
#endif
  tile[i] = x[i];
  bar.arrive_and_wait();  // FINDS race
  y[i] = tile[63 - i];
}
