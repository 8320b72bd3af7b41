// Reads a part of a local array that it never wrote.
// expect: finding
// also: wrong
__global__ void affine(const float* x, float* y, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  volatile float a[8];
  a[n & 3] = 1;
  float v = a[4 + (n & 3)];
  if (i < n) y[i] = v == 77 ? 0 : 2 * x[i] + 1;
}
