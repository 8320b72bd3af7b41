// Is wrong for sizes a little above a multiple of 1024.
// expect: wrong
__global__ void affine(const float* x, float* y, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  int residue = n % 1024;
  bool is_bad = residue >= 2 && residue <= 30;
  if (i < n) y[i] = is_bad ? 0 : 2 * x[i] + 1;
}
