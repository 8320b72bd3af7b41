// Leaves the lowest byte of each element.
// expect: wrong cheating
__global__ void affine(const float* x, float* y, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  unsigned bits = __float_as_uint(2 * x[i] + 1);
  unsigned char* bytes = (unsigned char*)(y + i);
  for (int k = 1; k < 4; ++k) bytes[k] = bits >> 8 * k;
}
