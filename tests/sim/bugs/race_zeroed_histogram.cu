// A histogram in shared memory is cleared by all threads and counted into at once.
// launch: grid=1 block=128 args=i32*128:iota,i32*128:zeros
extern "C" __global__ void bug(const int* x, int* y) {
  __shared__ int bins[128];
  bins[threadIdx.x] = 0;  // FINDS race
#ifdef FIXED
  __syncthreads();
#endif
  atomicAdd(&bins[x[threadIdx.x] * 37 % 128], 1);  // FINDS race init
  __syncthreads();
  y[threadIdx.x] = bins[threadIdx.x];
}
