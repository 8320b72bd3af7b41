// The date of the compile inside a macro.
// expect: cheating
#define WHEN __DATE__
__global__ void affine(const float* x, float* y, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] = 2 * x[i] + 1 + (WHEN[0] == 'x');
}
