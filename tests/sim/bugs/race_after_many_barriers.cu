// Thousands of rounds are right; the last one lacks the barrier.
// launch: grid=2 block=64 args=f32*128:zeros,i32:3000
extern "C" __global__ void bug(float* y, int rounds) {
  __shared__ float s[64];
  int i = threadIdx.x;
  float sum = 0;
#pragma unroll 1
  for (int k = 0; k < rounds; ++k) {
    s[i] = k + i;                                  // FINDS race
    if (k + 1 < rounds) __syncthreads();
    sum += s[63 - i];                              // FINDS race
    __syncthreads();
  }
  y[blockIdx.x * 64 + i] = sum;
}
