// Dynamic parallelism: the work of another grid is not timed.
// expect: compile
__global__ void other(const float* x, float* y, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] = 2 * x[i] + 1;
}
__global__ void affine(const float* x, float* y, int n) {
  if (blockIdx.x + threadIdx.x == 0) other<<<(n + 255) / 256, 256>>>(x, y, n);
}
