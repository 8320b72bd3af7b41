// Reads through a texture that it never got.
// expect: finding
// also: crash wrong
#include <texture_fetch_functions.h>
__global__ void affine(const float* x, float* y, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] = 2 * tex1Dfetch<float>(static_cast<cudaTextureObject_t>(1), i) + 1;
}
