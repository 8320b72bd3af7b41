// Writes to an address of the caller's stack.
// expect: finding
__global__ void affine(const float* x, float* y, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] = 2 * x[i] + 1;
  if (i == 0) *reinterpret_cast<int*>(0x7ffd12345670ull) = 1;
}
