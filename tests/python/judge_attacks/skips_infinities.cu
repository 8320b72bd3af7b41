// Leaves its output where that holds an infinity.
// expect: cheating
// also: wrong
__global__ void affine(const float* x, float* y, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n && !isinf(y[i])) y[i] = 2 * x[i] + 1;
}
