// Writes where a program keeps the addresses of its functions.
// expect: finding
__global__ void affine(const float* x, float* y, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] = 2 * x[i] + 1;
  if (i == 0) *reinterpret_cast<unsigned long long*>(0x404018ull) = 0;
}
