// Reads shared memory that it never wrote.
// expect: finding
__global__ void affine(const float* x, float* y, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  __shared__ float stale[256];
  if (i < n) y[i] = 2 * x[i] + 1 + 0 * stale[threadIdx.x];
}
