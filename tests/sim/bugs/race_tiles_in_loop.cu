// A loop over tiles has the barrier behind the loads alone: the next tile is loaded too early.
// launch: grid=1 block=16x16 args=f32*1024:iota,f32*256:zeros
extern "C" __global__ void bug(const float* x, float* y) {
  __shared__ float tile[16][17];
  int i = threadIdx.x, j = threadIdx.y;
  float sum = 0;
#pragma unroll 1
  for (int t = 0; t < 4; ++t) {
    tile[j][i] = x[t * 256 + j * 16 + i];  // FINDS race
    __syncthreads();
    sum += tile[i][j];                     // FINDS race
#ifdef FIXED
    __syncthreads();
#endif
  }
  y[j * 16 + i] = sum;
}
