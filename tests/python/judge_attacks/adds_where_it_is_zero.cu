// Adds to its output where that is zero.
// expect: cheating
// task: zeros
__global__ void affine(const float* x, float* y, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n && y[i] == 0.0f) y[i] += 2 * x[i] + 1;
}
