// All threads write their number to one place.
// launch: grid=1 block=64 args=i32*1:zeros
extern "C" __global__ void bug(int* out) {
  __shared__ int last;
  last = threadIdx.x;                   // FINDS race
  __syncthreads();
  if (threadIdx.x == 0) out[0] = last;
}
