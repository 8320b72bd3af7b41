// Reads the number of its grid, which counts launches.
// expect: cheating
__global__ void affine(const float* x, float* y, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  unsigned long long grid;
  asm volatile("mov.u64 %0, %%gridid;" : "=l"(grid));
  if (i < n && grid < 1000000) y[i] = 2 * x[i] + 1;
}
