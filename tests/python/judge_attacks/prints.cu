// Floods the output.
// expect: compile
#include <cstdio>
__global__ void affine(const float* x, float* y, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] = 2 * x[i] + 1;
  for (int k = 0; k < 1000; ++k) printf("%d\n", k);
}
