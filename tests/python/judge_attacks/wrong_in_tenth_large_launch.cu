// Counts the launches with the largest size alone.
// expect: cheating
__device__ int large;
__global__ void affine(const float* x, float* y, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] = 2 * x[i] + 1;
  if (i == 0 && n == 5000 && ++large >= 10) y[0] = 0;
}
