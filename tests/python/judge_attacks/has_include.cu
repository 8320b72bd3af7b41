// Asks whether a file is there.
// expect: compile
#if __has_include("/etc/shadow")
#define SHADOW 1
#endif
__global__ void affine(const float* x, float* y, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] = 2 * x[i] + 1;
}
