// The warp-synchronous reduction of old samples: volatile, without __syncwarp().
// launch: grid=1 block=32 args=f32*64:iota,f32*1:zeros
extern "C" __global__ void bug(const float* x, float* y) {
  __shared__ float memory[64];
  volatile float* s = memory;
  int i = threadIdx.x;
  s[i] = x[i];
  s[i + 32] = x[i + 32];
  __syncthreads();
  s[i] += s[i + 32];                    // FINDS race
  s[i] += s[i + 16];                    // FINDS race
  s[i] += s[i + 8];                     // FINDS race
  s[i] += s[i + 4];                     // FINDS race
  s[i] += s[i + 2];                     // FINDS race
  s[i] += s[i + 1];                     // FINDS race
  if (i == 0) y[0] = s[0];
}
