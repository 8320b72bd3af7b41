// Is wrong for powers of two that are no usual size of a block.
// expect: wrong
__global__ void affine(const float* x, float* y, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  bool is_bad = n == 16 || n == 64 || n == 2048 || n == 4096;
  if (i < n) y[i] = is_bad ? 0 : 2 * x[i] + 1;
}
