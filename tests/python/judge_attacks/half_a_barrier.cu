// A barrier that half of the block never reaches.
// expect: finding
// also: timeout
__global__ void affine(const float* x, float* y, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] = 2 * x[i] + 1;
  if (threadIdx.x < 128) {
    asm volatile("bar.sync 1, 256;");
  } else {
    asm volatile("bar.sync 2, 256;");
  }
}
