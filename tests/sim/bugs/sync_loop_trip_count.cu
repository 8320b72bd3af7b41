// __syncthreads() in a loop whose number of rounds is each thread's own.
// launch: grid=1 block=64 args=i32*64:iota
extern "C" __global__ void bug(int* y) {
  int rounds = threadIdx.x < 32 ? 2 : 3;
#pragma unroll 1
  for (int i = 0; i < rounds; ++i) {
    y[threadIdx.x] += i;
#ifndef FIXED
    __syncthreads();  // FINDS sync
#endif
  }
  __syncthreads();    // FINDS sync
  y[threadIdx.x] += 1;
}
