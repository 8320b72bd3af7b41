// Is wrong for sizes a little below a multiple of 1024.
// expect: wrong
__global__ void affine(const float* x, float* y, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  int residue = n % 1024;
  bool is_bad = n > 1024 && residue >= 994 && residue <= 1022;
  if (i < n) y[i] = is_bad ? 0 : 2 * x[i] + 1;
}
