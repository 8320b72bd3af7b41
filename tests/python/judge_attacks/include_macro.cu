// The name of the file is a macro.
// expect: compile
#define FILE_NAME "/etc/passwd"
#include FILE_NAME
__global__ void affine(const float* x, float* y, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] = 2 * x[i] + 1;
}
