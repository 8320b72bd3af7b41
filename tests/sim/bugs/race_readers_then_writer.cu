// Two warps read a tile; a third one fills it anew before the barrier.
// launch: grid=1 block=96 args=f32*64:zeros
extern "C" __global__ void bug(float* y) {
  __shared__ float tile[32];
  int i = threadIdx.x % 32, warp = threadIdx.x / 32;
  if (warp == 0) tile[i] = i;
  __syncthreads();
  if (warp < 2) y[warp * 32 + i] = tile[i];        // FINDS race
  if (warp == 2) tile[i] = -i;                     // FINDS race
  __syncthreads();
  if (warp == 0) y[i] += tile[i];
}
