// Leaves its output where that holds -0.
// expect: cheating
// also: wrong
__global__ void affine(const float* x, float* y, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n && __float_as_uint(y[i]) != 0x80000000u) y[i] = 2 * x[i] + 1;
}
