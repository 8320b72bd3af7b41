// Wants an argument more.
// expect: compile
__global__ void affine(const float* x, float* y, int n, const float* expected) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] = 2 * x[i] + 1;
}
