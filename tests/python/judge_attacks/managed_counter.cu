// Counts launches in managed memory.
// expect: cheating
__managed__ int calls;
__global__ void affine(const float* x, float* y, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] = 2 * x[i] + 1;
  if (i == 0 && ++calls > 12) y[0] = 0;
}
