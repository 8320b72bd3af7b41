// Burns time in small launches, to have fewer of them, and is wrong from its 31st launch on.
// expect: cheating
__device__ int calls;
__global__ void affine(const float* x, float* y, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] = 2 * x[i] + 1;
  if (i != 0) return;
  if (n < 32) {
    volatile int burnt = 0;
    for (int k = 0; k < 20000; ++k) burnt = burnt + k;
  }
  if (++calls > 30) y[0] = 0;
}
