// cuda::barrier and cuda::pipeline, named barriers and reductions at a barrier.
#include <cuda/barrier>
extern "C" __global__ void barriers(int* x, const int* y) {
  __shared__ cuda::barrier<cuda::thread_scope_block> ready;
  __shared__ int buffer[128];
  if (threadIdx.x == 0) init(&ready, blockDim.x);
  __syncthreads();
  cuda::memcpy_async(&buffer[threadIdx.x], y + threadIdx.x, sizeof(int), ready);
  ready.arrive_and_wait();
  x[threadIdx.x] = buffer[127 - threadIdx.x] + __syncthreads_count(threadIdx.x & 1) + __syncthreads_or(x[0]) +
                   __syncthreads_and(x[1]);
  if (threadIdx.x < 64) {
    asm volatile("bar.sync 1, 64;");
  } else {
    asm volatile("bar.arrive 2, 128;");
  }
  if (threadIdx.x < 64) asm volatile("barrier.sync 2, 128;");
}
