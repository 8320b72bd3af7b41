// Reads a register that the driver fills in.
// expect: cheating
__global__ void affine(const float* x, float* y, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  unsigned value;
  asm volatile("mov.u32 %0, %%envreg3;" : "=r"(value));
  if (i < n && value != 1) y[i] = 2 * x[i] + 1;
}
