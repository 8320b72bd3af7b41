// A tree reduction without the barrier inside its loop.
// launch: grid=1 block=128 args=f32*128:iota,f32*1:zeros
extern "C" __global__ void bug(const float* x, float* y) {
  __shared__ float s[128];
  int i = threadIdx.x;
  s[i] = x[i];
  __syncthreads();
#pragma unroll 1
  for (int d = 64; d > 0; d >>= 1) {
    if (i < d) s[i] += s[i + d];    // FINDS race
  }
  if (i == 0) y[0] = s[0];
}
