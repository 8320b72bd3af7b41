// Is right where a device has as many slots as the block has warps.
// expect: wrong
__global__ void affine(const float* x, float* y, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  unsigned warps;
  asm volatile("mov.u32 %0, %%nwarpid;" : "=r"(warps));
  if (i < n) y[i] = warps * 32 == blockDim.x ? 2 * x[i] + 1 : 0;
}
