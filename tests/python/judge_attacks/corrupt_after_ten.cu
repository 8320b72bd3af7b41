// Right for ten calls, then corrupt.
// expect: cheating
__device__ int calls[64];
__global__ void affine(const float* x, float* y, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  y[i] = 2 * x[i] + 1;
  if (i < 64 && ++calls[i] > 10) y[i] += 1;
}
