// The halo is loaded by edge threads after the barrier that was meant to cover it.
// launch: grid=1 block=64 args=f32*66:iota,f32*64:zeros
extern "C" __global__ void bug(const float* x, float* y) {
  __shared__ float s[66];
  int i = threadIdx.x;
  s[i + 1] = x[i + 1];
  __syncthreads();
  if (i == 0) s[0] = x[0];              // FINDS race
  if (i == 0) s[65] = x[65];            // FINDS race
  if (i == 32 || i == 63) y[i] = s[i == 32 ? 0 : 65];  // FINDS race
}
