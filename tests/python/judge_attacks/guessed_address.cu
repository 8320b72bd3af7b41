// Reads an address where expected results lay once.
// expect: finding
__global__ void affine(const float* x, float* y, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] = reinterpret_cast<const float*>(0x7f5a00000000ull)[i];
}
