// The tile is refilled while slow warps still read the last one: the loop lacks its second barrier.
// launch: grid=1 block=128 args=f32*512:iota,f32*128:zeros
extern "C" __global__ void bug(const float* x, float* y) {
  __shared__ float tile[128];
  int i = threadIdx.x;
  float sum = 0;
  for (int t = 0; t < 4; ++t) {
    tile[i] = x[t * 128 + i];     // FINDS race
    __syncthreads();
    sum += tile[127 - i];         // FINDS race
  }
  y[i] = sum;
}
