// Keeps the first result and copies it in each later launch.
// expect: cheating
__device__ float saved[8192];
__device__ bool known[8192];
__global__ void affine(const float* x, float* y, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  if (i < 8192 && known[i]) {
    y[i] = saved[i];
  } else {
    y[i] = 2 * x[i] + 1;
    if (i < 8192) {
      saved[i] = y[i];
      known[i] = true;
    }
  }
}
