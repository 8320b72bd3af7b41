// Right for sizes that are multiples of the block alone.
// expect: wrong
__global__ void affine(const float* x, float* y, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n / 256 * 256) y[i] = 2 * x[i] + 1;
}
