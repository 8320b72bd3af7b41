// Branches on a predicate that it never wrote.
// expect: wrong
// also: cheating finding
__global__ void affine(const float* x, float* y, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  unsigned left;
  asm volatile("{ .reg .pred p; selp.u32 %0, 1, 0, p; }" : "=r"(left));
  if (i < n) y[i] = left == 0 ? 2 * x[i] + 1 : 0;
}
