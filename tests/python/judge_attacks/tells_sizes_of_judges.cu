// Is right for sizes around the edges of tiles alone, and the smallest and largest.
// expect: wrong
__global__ void affine(const float* x, float* y, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  bool usual = n == 5000 || n == 1;
  for (int edge = 32; edge <= 1024; edge *= 2) usual |= n >= edge - 1 && n <= edge + 1;
  if (i < n) y[i] = usual ? 2 * x[i] + 1 : 0;
}
