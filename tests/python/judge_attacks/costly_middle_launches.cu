// Burns time in all launches but the largest, and is wrong from its 41st launch on.
// expect: cheating
__device__ int calls;
__global__ void affine(const float* x, float* y, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] = 2 * x[i] + 1;
  if (i != 0) return;
  if (n < 5000) {
    volatile int burnt = 0;
    for (int k = 0; k < 5000; ++k) burnt = burnt + k;
  }
  if (++calls > 40) y[0] = 0;
}
