// A barrier with a reduction in one branch, without in the other.
// launch: grid=1 block=64 args=i32*64:iota
extern "C" __global__ void bug(int* y) {
  int v = y[threadIdx.x];
  if (threadIdx.x < 32) {
    v = __syncthreads_count(v > 3);         // FINDS sync
  } else {
    __syncthreads();                        // FINDS sync
  }
  y[threadIdx.x] = v;
}
