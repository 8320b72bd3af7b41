// Is right where blocks have the multiprocessors of an idle device.
// expect: wrong cheating
__global__ void affine(const float* x, float* y, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  unsigned number;
  asm volatile("mov.u32 %0, %%smid;" : "=r"(number));
  if (i < n) y[i] = number == blockIdx.x % 132 ? 2 * x[i] + 1 : 0;
}
