// Lanes read their neighbour's word before and after they meet; the second read lacks a meeting.
// launch: grid=1 block=32 args=f32*32:zeros
extern "C" __global__ void bug(float* y) {
  __shared__ float s[33];
  int i = threadIdx.x;
  s[i] = i;
  if (i == 0) s[32] = 0;
  __syncthreads();
  float sum = 0;
#pragma unroll 1
  for (int k = 0; k < 2; ++k) {
    sum += s[i + 1];                               // FINDS race
    if (k == 0) __syncwarp();
  }
  s[i] = sum;                                      // FINDS race
  __syncwarp();
  y[i] = s[i];
}
