// Half of the warps leave by inline PTX.
// expect: wrong
__global__ void affine(const float* x, float* y, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (threadIdx.x >= 128) asm volatile("exit;");
  if (i < n) y[i] = 2 * x[i] + 1;
}
