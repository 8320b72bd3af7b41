// Atomics on a counter in shared memory that nobody set.
// launch: grid=1 block=64 args=i32*1:zeros
extern "C" __global__ void bug(int* out) {
  __shared__ int count;
  atomicAdd(&count, 1);                     // FINDS init
  __syncthreads();
  if (threadIdx.x == 0) out[0] = count;
}
