// A histogram in shared memory with a plain increment.
// launch: grid=1 block=256 args=i32*256:iota,i32*8:zeros
extern "C" __global__ void bug(const int* x, int* out) {
  __shared__ int bins[8];
  if (threadIdx.x < 8) bins[threadIdx.x] = 0;
  __syncthreads();
  bins[x[threadIdx.x] % 8]++;           // FINDS race
  __syncthreads();
  if (threadIdx.x < 8) out[threadIdx.x] = bins[threadIdx.x];
}
