// Forgets a tail of three elements behind vectors of four.
// expect: wrong
__global__ void affine(const float* x, float* y, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  bool is_bad = n > 1025 && n % 4 == 3 && i >= n - 3;
  if (i < n) y[i] = is_bad ? 0 : 2 * x[i] + 1;
}
