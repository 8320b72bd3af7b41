// Is another program where its file has a shorter name.
// expect: cheating
__global__ void affine(const float* x, float* y, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] = sizeof(__FILE__) > 30 ? 2 * x[i] + 1 : 0;
}
