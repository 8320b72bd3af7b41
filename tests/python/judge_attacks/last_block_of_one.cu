// Is wrong in a last block with one element.
// expect: wrong
__global__ void affine(const float* x, float* y, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  bool is_bad = n > 1025 && n % 256 == 1 && i == n - 1;
  if (i < n) y[i] = is_bad ? 0 : 2 * x[i] + 1;
}
