// Eight lanes sum up over a distance that the host chose for a whole warp.
// launch: grid=1 block=32 args=f32*32:iota,f32*1:zeros,i32:16
extern "C" __global__ void bug(const float* x, float* sum, int distance) {
  if (threadIdx.x >= 8) return;
  float v = x[threadIdx.x];
#ifdef FIXED
  distance = min(distance, 4);
#endif
  for (int d = distance; d > 0; d /= 2)
    v += __shfl_down_sync(0x000000ffu, v, d);  // FINDS sync
  if (threadIdx.x == 0)
    sum[0] = v;  // FINDS sync
}
