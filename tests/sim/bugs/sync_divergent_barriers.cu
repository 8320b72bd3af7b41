// Both branches have a barrier, but not the same one.
// launch: grid=1 block=64 args=i32*64:zeros
extern "C" __global__ void bug(int* y) {
  __shared__ int s;
  if (threadIdx.x < 32) {
    if (threadIdx.x == 0) s = 1;
    __syncthreads();                        // FINDS sync
    y[threadIdx.x] = s;
  } else {
    y[threadIdx.x] = 5;
    __syncthreads();                        // FINDS sync
    y[threadIdx.x] += s;
  }
}
