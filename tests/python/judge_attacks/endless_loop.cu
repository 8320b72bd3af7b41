// Never ends.
// expect: timeout
// also: finding
__global__ void affine(const float* x, float* y, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  while (n > 0) {
    if (i < n) y[i] = 2 * x[i] + 1;
    __threadfence();
  }
}
