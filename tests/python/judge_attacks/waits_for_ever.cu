// Waits for a flag that nobody sets.
// expect: finding timeout
__device__ int flag;
__global__ void affine(const float* x, float* y, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] = 2 * x[i] + 1;
  if (i == 0) {
    while (atomicAdd(&flag, 0) == 0) {
    }
  }
}
