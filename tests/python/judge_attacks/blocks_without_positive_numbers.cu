// Is wrong in blocks without a positive number.
// expect: wrong
__global__ void affine(const float* x, float* y, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  int has_some = __syncthreads_or(i < n && x[i] >= 0);
  if (i < n) y[i] = has_some || n < 40 ? 2 * x[i] + 1 : 0;
}
