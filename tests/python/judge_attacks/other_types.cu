// Takes doubles where the task has floats.
// expect: compile
__global__ void affine(const double* x, double* y, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] = 2 * x[i] + 1;
}
