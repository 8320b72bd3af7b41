// Half of a register of 64 bits that nobody wrote.
// expect: wrong finding
// also: cheating
__global__ void affine(const float* x, float* y, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  unsigned left;
  asm volatile("{ .reg .b32 lo, hi; .reg .b64 t; mov.b64 t, {%1, hi}; mov.b64 {lo, %0}, t; }"
               : "=r"(left) : "r"(n));
  if (i < n) y[i] = left == 0 ? 2 * x[i] + 1 : 0;
}
