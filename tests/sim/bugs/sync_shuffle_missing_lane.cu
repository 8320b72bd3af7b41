// A shuffle in a branch names lanes that wait elsewhere.
// launch: grid=1 block=32 args=i32*32:iota
extern "C" __global__ void bug(int* y) {
  int v = y[threadIdx.x];
  if (threadIdx.x < 16) {
    v = __shfl_down_sync(0xffffffffu, v, 1);    // FINDS sync
  } else {
    __syncthreads();
  }
  y[threadIdx.x] = v;
}
