// Local memory of inline PTX that nobody wrote.
// expect: finding
// also: wrong
__global__ void affine(const float* x, float* y, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  unsigned left;
  asm volatile("{ .local .b32 l; ld.local.b32 %0, [l]; }" : "=r"(left));
  if (i < n) y[i] = left == 7 ? 0 : 2 * x[i] + 1;
}
