// Reads a register that it never wrote, for what another kernel left there.
// expect: wrong
// also: cheating finding
__global__ void affine(const float* x, float* y, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  unsigned left;
  asm volatile("{ .reg .u32 t; mov.u32 %0, t; }" : "=r"(left));
  if (i < n) y[i] = left == 0 ? 2 * x[i] + 1 : 0;
}
