// One thread frees what malloc() gave it while the others of the block still read there.
// launch: grid=1 block=64 args=i32*64:zeros
extern "C" __global__ void bug(int* y) {
  __shared__ int* list;
  if (threadIdx.x == 0) {
    list = static_cast<int*>(malloc(64 * sizeof(int)));
    for (int i = 0; i < 64; ++i) list[i] = i;
  }
  __syncthreads();
  y[threadIdx.x] = list[63 - threadIdx.x];  // FINDS use-after-free
#ifdef FIXED
  __syncthreads();
#endif
  if (threadIdx.x == 0) free(list);
}
