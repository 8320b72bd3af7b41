// Is wrong for small sizes away from the edges of tiles.
// expect: wrong
__global__ void affine(const float* x, float* y, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  bool is_bad = (n >= 2 && n <= 30) || (n >= 34 && n <= 126);
  if (i < n) y[i] = is_bad ? 0 : 2 * x[i] + 1;
}
