// Takes its input without const, to write to it.
// expect: compile
__global__ void affine(float* x, float* y, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] = 2 * x[i] + 1;
}
