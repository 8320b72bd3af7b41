// Forgets the last element of large odd sizes.
// expect: wrong
__global__ void affine(const float* x, float* y, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  bool is_bad = n > 2000 && n % 2 == 1 && i == n - 1;
  if (i < n) y[i] = is_bad ? 0 : 2 * x[i] + 1;
}
