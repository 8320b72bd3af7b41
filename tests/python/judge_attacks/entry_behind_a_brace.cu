// Ends its function within inline assembly, and begins another entry.
// expect: cheating
__global__ void other(const float* x, float* y, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] = 2 * x[i] + 1;
}
__global__ void affine(const float* x, float* y, int n) {
  asm volatile("ret;\n}\n.visible .entry spare() {\n.reg .u32 %t;\nmov.u32 %t, %clock;");
}
