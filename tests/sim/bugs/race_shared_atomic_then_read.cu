// Threads count with atomics in shared memory and read the total at once.
// launch: grid=1 block=128 args=i32*128:iota,i32*128:zeros
extern "C" __global__ void bug(const int* x, int* y) {
  __shared__ int total;
  if (threadIdx.x == 0) total = 0;
  __syncthreads();
  if (x[threadIdx.x] % 3 == 0) atomicAdd(&total, 1);  // FINDS race
#ifdef FIXED
  __syncthreads();
#endif
  y[threadIdx.x] = total;                             // FINDS race
}
