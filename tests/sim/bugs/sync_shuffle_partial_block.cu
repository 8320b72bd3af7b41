// A block of one warp and a half sums up as if it had two.
// launch: grid=1 block=48 args=i32*48:iota,i32*2:zeros
extern "C" __global__ void bug(const int* x, int* sums) {
  int v = x[threadIdx.x];
#ifdef FIXED
  int left = blockDim.x - threadIdx.x;
#else
  int left = 32;
#endif
  for (int d = 16; d > 0; d /= 2) {
    int other = __shfl_xor_sync(0xffffffffu, v, d);  // FINDS sync
    if (d < left) v += other;
  }
  if (threadIdx.x % 32 == 0)
    sums[threadIdx.x / 32] = v;  // FINDS sync
}
