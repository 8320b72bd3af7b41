// A sum over the block is called twice: the second one writes what others still read of the first.
// launch: grid=1 block=64 args=f32*64:iota,f32*64:zeros
__device__ float sum_of(float v, float* s) {
#ifdef FIXED
  __syncthreads();
#endif
  s[threadIdx.x] = v;  // FINDS race
  for (int d = 32; d > 0; d /= 2) {
    __syncthreads();
    if (threadIdx.x < d) s[threadIdx.x] += s[threadIdx.x + d];
  }
  __syncthreads();
  return s[0];  // FINDS race
}
extern "C" __global__ void bug(const float* x, float* y) {
  __shared__ float s[64];
  float v = x[threadIdx.x];
  float mean = sum_of(v, s) / 64;
  float square = sum_of((v - mean) * (v - mean), s);
  y[threadIdx.x] = square;
}
