// Reads an array on its stack before it wrote it.
// expect: finding
__global__ void affine(const float* x, float* y, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  float stack[64];
  if (n < 0) stack[threadIdx.x & 63] = 1;
  if (i < n) y[i] = 2 * x[i] + 1 + (stack[(i * 7) & 63] == 5.5f ? 1 : 0);
}
