// The same within a warp.
// launch: grid=1 block=32 args=i32*32:zeros
extern "C" __global__ void bug(int* y) {
  if (threadIdx.x % 2 == 0) {
    y[threadIdx.x] = 1;
    __syncthreads();                        // FINDS sync
    y[threadIdx.x] += 1;
  } else {
    y[threadIdx.x] = 2;
    __syncthreads();                        // FINDS sync
    y[threadIdx.x] += 2;
  }
}
