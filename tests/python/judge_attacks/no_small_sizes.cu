// Wrong for a single element, which nobody tries.
// expect: wrong
__global__ void affine(const float* x, float* y, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (n == 1) return;
  if (i < n) y[i] = 2 * x[i] + 1;
}
