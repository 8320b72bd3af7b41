// Is right where warps have the slots of an idle device.
// expect: wrong cheating
__global__ void affine(const float* x, float* y, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  unsigned warp;
  asm volatile("mov.u32 %0, %%warpid;" : "=r"(warp));
  if (i < n) y[i] = warp == threadIdx.x / 32 ? 2 * x[i] + 1 : 0;
}
