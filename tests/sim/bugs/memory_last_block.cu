// The last, partial block checks its index against n with <=.
// launch: grid=4 block=32 args=f32*100:iota,f32*100:zeros,i32:100
extern "C" __global__ void bug(const float* x, float* y, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
#ifdef FIXED
  if (i < n)
#else
  if (i <= n)
#endif
    y[i] = 2 * x[i];  // FINDS bounds
}
