// A counter is read plainly while other warps still add to it.
// launch: grid=1 block=128 args=i32*128:zeros
extern "C" __global__ void bug(int* out) {
  __shared__ int count;
  if (threadIdx.x == 0) count = 0;
  __syncthreads();
  atomicAdd(&count, 1);                 // FINDS race
  out[threadIdx.x] = count;             // FINDS race
}
