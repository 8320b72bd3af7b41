// Skips elements that hold the largest float, where a minimum begins.
// expect: cheating
// also: wrong
__global__ void affine(const float* x, float* y, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n && y[i] != 3.402823466e+38f) y[i] = 2 * x[i] + 1;
}
