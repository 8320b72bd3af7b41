// Takes the number of the multiprocessor for that of the block.
// expect: wrong cheating finding
__global__ void affine(const float* x, float* y, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  unsigned block;
  asm volatile("mov.u32 %0, %%smid;" : "=r"(block));
  i = block * blockDim.x + threadIdx.x;
  if (i < n) y[i] = 2 * x[i] + 1;
}
