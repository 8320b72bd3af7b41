// Is right where the first block runs on the first multiprocessor.
// expect: wrong cheating
__global__ void affine(const float* x, float* y, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  unsigned number;
  asm volatile("mov.u32 %0, %%smid;" : "=r"(number));
  if (i < n) y[i] = blockIdx.x != 0 || number == 0 ? 2 * x[i] + 1 : 0;
}
