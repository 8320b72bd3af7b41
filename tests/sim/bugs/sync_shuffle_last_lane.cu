// The last lane's running sum goes to all, also where the warp ends before it.
// launch: grid=1 block=40 args=i32*40:iota,i32*40:zeros
extern "C" __global__ void bug(const int* x, int* y) {
  int v = x[threadIdx.x], lane = threadIdx.x % 32;
  for (int d = 1; d < 32; d *= 2) {
    int before = __shfl_up_sync(0xffffffffu, v, d);
    if (lane >= d) v += before;
  }
#ifdef FIXED
  int last = min(31, blockDim.x - 1 - threadIdx.x / 32 * 32);
#else
  int last = 31;
#endif
  int all = __shfl_sync(0xffffffffu, v, last);  // FINDS sync
  y[threadIdx.x] = all - v;  // FINDS sync
}
