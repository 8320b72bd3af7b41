// Compiled for fewer threads than the task launches.
// expect: crash
__global__ void __launch_bounds__(32) affine(const float* x, float* y, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] = 2 * x[i] + 1;
}
