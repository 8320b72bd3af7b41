// Takes the number of slots for that of the warps in a block.
// expect: wrong
__global__ void affine(const float* x, float* y, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  unsigned warps;
  asm volatile("mov.u32 %0, %%nwarpid;" : "=r"(warps));
  i = blockIdx.x * warps * 32 + threadIdx.x;
  if (i < n) y[i] = 2 * x[i] + 1;
}
