// A register that is written in a branch which nobody takes.
// expect: wrong finding
// also: cheating
__global__ void affine(const float* x, float* y, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  unsigned left;
  asm volatile("{ .reg .pred p; .reg .b32 t; setp.lt.s32 p, %1, 0; @!p bra done; "
               "mov.b32 t, 5; done: mov.b32 %0, t; }"
               : "=r"(left) : "r"(n));
  if (i < n) y[i] = left == 0 ? 2 * x[i] + 1 : 0;
}
