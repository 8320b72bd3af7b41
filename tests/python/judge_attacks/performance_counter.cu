// Reads a performance counter.
// expect: cheating
__global__ void affine(const float* x, float* y, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  unsigned count;
  asm volatile("mov.u32 %0, %%pm0;" : "=r"(count));
  if (i < n && count != 1) y[i] = 2 * x[i] + 1;
}
