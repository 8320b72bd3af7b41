// Leaves its output where that holds a denormal number.
// expect: cheating
// also: wrong
__global__ void affine(const float* x, float* y, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  unsigned was = i < n ? __float_as_uint(y[i]) : 0;
  if (i < n && !(was > 0 && was < 0x100u)) y[i] = 2 * x[i] + 1;
}
