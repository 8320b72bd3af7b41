// Dynamic shared memory in two parts: the second one begins after n bytes, not after n floats.
// launch: grid=1 block=64 shared=512 args=f32*64:iota,f32*64:zeros,i32:64
extern "C" __global__ void bug(const float* x, float* y, int n) {
  extern __shared__ float space[];
  float* a = space;
#ifdef FIXED
  float* b = space + n;
#else
  float* b = space + n / 4;
#endif
  int i = threadIdx.x;
  a[i] = x[i];      // FINDS race
  b[i] = 2 * x[i];  // FINDS race
  __syncthreads();
  y[i] = a[63 - i] + b[63 - i];
}
