// The time of the compile, its name on two joined lines.
// expect: cheating
__global__ void affine(const float* x, float* y, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] = 2 * x[i] + 1 + (__TI\
ME__[7] == 'x');
}
