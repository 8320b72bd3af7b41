// Writes through a null pointer.
// expect: finding
__global__ void affine(const float* x, float* y, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  float* none = nullptr;
  if (i == n - 1) none[0] = 1;
  if (i < n) y[i] = 2 * x[i] + 1;
}
