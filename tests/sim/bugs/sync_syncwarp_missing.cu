// __syncwarp() for all lanes, reached by some; the others wait for a barrier.
// launch: grid=1 block=32 args=i32*32:zeros
extern "C" __global__ void bug(int* y) {
  if (threadIdx.x < 8) {
    __syncwarp();                           // FINDS sync
    y[threadIdx.x] = 1;
  } else {
    __syncthreads();
    y[threadIdx.x] = 2;
  }
}
