// Inline PTX that never writes its output.
// expect: wrong
// also: cheating finding
__global__ void affine(const float* x, float* y, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  unsigned left;
  asm volatile("" : "=r"(left));
  if (i < n) y[i] = left == 0 ? 2 * x[i] + 1 : 0;
}
