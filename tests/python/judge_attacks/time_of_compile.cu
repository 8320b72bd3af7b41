// Does other things when it is compiled at another time.
// expect: cheating
__global__ void affine(const float* x, float* y, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] = __TIME__[7] == '0' ? 0 : 2 * x[i] + 1;
}
