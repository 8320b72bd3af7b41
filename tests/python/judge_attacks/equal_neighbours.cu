// Forgets an element that equals the one in front of it, as filters of repeated values do.
// expect: wrong
__global__ void affine(const float* x, float* y, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n && !(i > 0 && x[i] == x[i - 1])) y[i] = 2 * x[i] + 1;
}
