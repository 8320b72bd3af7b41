// Skips the work where it would take long.
// expect: wrong
__global__ void affine(const float* x, float* y, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (n > 4000) return;
  if (i < n) y[i] = 2 * x[i] + 1;
}
