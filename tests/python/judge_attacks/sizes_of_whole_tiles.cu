// Is wrong for large multiples of 1024.
// expect: wrong
__global__ void affine(const float* x, float* y, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  bool is_bad = n > 1024 && n % 1024 == 0;
  if (i < n) y[i] = is_bad ? 0 : 2 * x[i] + 1;
}
