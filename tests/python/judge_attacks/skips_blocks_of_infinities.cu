// Leaves blocks that hold infinities alone.
// expect: cheating
// also: wrong
__global__ void affine(const float* x, float* y, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  bool all = __syncthreads_and(i < n && isinf(y[i]) && y[i] > 0);
  if (i < n && !all) y[i] = 2 * x[i] + 1;
}
