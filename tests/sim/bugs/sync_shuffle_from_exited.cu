// Threads behind the end of the data leave before the warp sums up.
// launch: grid=2 block=64 args=f32*100:iota,f32*1:zeros,i32:100
extern "C" __global__ void bug(const float* x, float* sum, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
#ifdef FIXED
  float v = i < n ? x[i] : 0;
#else
  if (i >= n) return;
  float v = x[i];
#endif
  for (int d = 16; d > 0; d /= 2)
    v += __shfl_down_sync(0xffffffffu, v, d);  // FINDS sync
  if (threadIdx.x % 32 == 0)
    atomicAdd(sum, v);  // FINDS sync
}
