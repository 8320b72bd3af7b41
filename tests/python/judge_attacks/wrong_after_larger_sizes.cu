// Is wrong where the launch before had a larger size.
// expect: cheating
__device__ int before;
__global__ void affine(const float* x, float* y, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] = 2 * x[i] + 1;
  if (i == 0) {
    if (before > n + 1000) y[0] = 0;
    before = n;
  }
}
