// Reads four floats at an address for one.
// expect: finding
__global__ void affine(const float* x, float* y, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] = 2 * x[i] + 1;
  if (i == 0 && n > 8) {
    float4 four = *reinterpret_cast<const float4*>(x + 1);
    y[5] = 2 * four.w + 1 + 0 * (four.x + four.y + four.z);
  }
}
