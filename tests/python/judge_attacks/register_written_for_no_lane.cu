// Writes a register under a condition that is never true, and reads it.
// expect: wrong
// also: cheating finding
__global__ void affine(const float* x, float* y, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  unsigned left;
  asm volatile("{ .reg .u32 t; .reg .pred p; setp.lt.s32 p, %1, 0;"
               " @p mov.u32 t, 1; mov.u32 %0, t; }"
               : "=r"(left)
               : "r"(n));
  if (i < n) y[i] = left == 0 ? 2 * x[i] + 1 : 0;
}
