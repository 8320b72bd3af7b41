// Is wrong in blocks whose elements rise, as if they were sorted already.
// expect: wrong
__global__ void affine(const float* x, float* y, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  int falls = __syncthreads_or(i + 1 < n && threadIdx.x + 1 < blockDim.x && x[i] > x[i + 1]);
  if (i < n) y[i] = falls || n < 40 ? 2 * x[i] + 1 : 0;
}
