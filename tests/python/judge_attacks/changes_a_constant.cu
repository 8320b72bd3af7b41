// Writes to its own constant memory.
// expect: finding
// also: cheating crash
__constant__ float two = 2;
__global__ void affine(const float* x, float* y, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i == 0) *const_cast<float*>(&two) = 3;
  if (i < n) y[i] = 2 * x[i] + 1;
}
