// Macros put the name of the file together.
// expect: compile
#define TEXT(a) #a
#define NAME(a, b) TEXT(a/b)
#include NAME(/etc, passwd)
__global__ void affine(const float* x, float* y, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] = 2 * x[i] + 1;
}
