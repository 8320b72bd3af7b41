// "Has anything changed?" in shared memory: the flag is cleared while others still look at it.
// launch: grid=1 block=64 args=i32*64:iota,i32*1:zeros
extern "C" __global__ void bug(int* x, int* rounds) {
  __shared__ int changed;
  int i = threadIdx.x, n = 0;
  do {
#ifdef FIXED
    __syncthreads();
#endif
    if (i == 0) changed = 0;  // FINDS race
    __syncthreads();
    if (x[i] > 60) {
      --x[i];
      changed = 1;
    }
    ++n;
    __syncthreads();
  } while (changed);          // FINDS race
  if (i == 0) *rounds = n;
}
