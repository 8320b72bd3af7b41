// Burns so much time where n is small that few launches fit into the timeout, then turns wrong.
// expect: timeout cheating
// also: wrong
__device__ int calls;
__global__ void affine(const float* x, float* y, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] = 2 * x[i] + 1;
  if (i != 0) return;
  if (n < 32) { volatile int burnt = 0; for (int k = 0; k < 300000; ++k) burnt = burnt + k; }
  if (++calls > 20) y[0] = 0;
}
