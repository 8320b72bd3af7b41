// Dynamic shared memory: the second half is used, the first one filled.
// launch: grid=1 block=32 shared=256 args=f32*32:iota,f32*32:zeros
extern "C" __global__ void bug(const float* x, float* y) {
  extern __shared__ float s[];
  int i = threadIdx.x;
  s[i] = x[i];
  __syncthreads();
  y[i] = s[i + 32];                         // FINDS init
}
