// One thread clears a counter that the others already add to.
// launch: grid=1 block=128 args=i32*1:zeros
extern "C" __global__ void bug(int* out) {
  __shared__ int count;
  if (threadIdx.x == 0) count = 0;      // FINDS race
  atomicAdd(&count, 1);                 // FINDS race
  __syncthreads();
  if (threadIdx.x == 0) out[0] = count;
}
