// A double buffer that flips the wrong way: it reads the half that is being filled.
// launch: grid=1 block=64 args=f32*256:iota,f32*64:zeros
extern "C" __global__ void bug(const float* x, float* y) {
  __shared__ float buffer[2][64];
  int i = threadIdx.x;
  float sum = 0;
  buffer[0][i] = x[i];
  __syncthreads();
#pragma unroll 1
  for (int t = 1; t < 4; ++t) {
    buffer[t & 1][i] = x[t * 64 + i];   // FINDS race
    sum += buffer[t & 1][63 - i];       // FINDS race init
    __syncthreads();
  }
  y[i] = sum;
}
