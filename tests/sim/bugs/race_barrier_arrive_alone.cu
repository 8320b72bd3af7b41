// Threads arrive at a cuda::barrier and read what others wrote before they wait for it.
// launch: grid=1 block=64 args=f32*64:iota,f32*64:zeros
#include <cuda/barrier>
extern "C" __global__ void bug(const float* x, float* y) {
  __shared__ float tile[64];
  __shared__ cuda::barrier<cuda::thread_scope_block> bar;
  int i = threadIdx.x;
  if (i == 0) init(&bar, 64);
  __syncthreads();
  tile[i] = x[i];  // FINDS race
  auto token = bar.arrive();
#ifdef FIXED
  bar.wait(static_cast<decltype(token)&&>(token));
  y[i] = tile[i ^ 32];
#else
  y[i] = tile[i ^ 32];  // FINDS race init
  bar.wait(static_cast<decltype(token)&&>(token));
#endif
}
