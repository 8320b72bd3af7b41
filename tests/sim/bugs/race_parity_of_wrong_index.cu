// A double buffer chooses its half by the wrong bit of the index: two steps in a row use the same.
// launch: grid=1 block=64 args=f32*256:iota,f32*64:zeros
#ifdef FIXED
#define HALF(t) ((t) & 1)
#else
#define HALF(t) ((t) >> 1 & 1)
#endif
extern "C" __global__ void bug(const float* x, float* y) {
  __shared__ float buffer[2][64];
  int i = threadIdx.x;
  float sum = 0;
#pragma unroll 1
  for (int t = 0; t < 4; ++t) {
    buffer[HALF(t)][i] = x[t * 64 + i];  // FINDS race
    __syncthreads();
    sum += buffer[HALF(t)][63 - i];      // FINDS race
  }
  y[i] = sum;
}
