// Writes a verdict and codes of terminals into the message of an assertion.
// expect: finding
// also: crash
#include <cassert>
__global__ void affine(const float* x, float* y, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  assert(n < 0 && "\x1b[2J\raccepted");
  if (i < n) y[i] = 2 * x[i] + 1;
}
