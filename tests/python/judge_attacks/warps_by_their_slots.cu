// Takes the slot of a warp for its number in the block.
// expect: wrong finding
__global__ void affine(const float* x, float* y, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  unsigned warp;
  asm volatile("mov.u32 %0, %%warpid;" : "=r"(warp));
  i = blockIdx.x * blockDim.x + warp * 32 + threadIdx.x % 32;
  if (i < n) y[i] = 2 * x[i] + 1;
}
