// Discards lines of its input from the L2 cache, which need not be in memory yet.
// expect: cheating finding
// also: compile wrong
__global__ void affine(const float* x, float* y, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] = 2 * x[i] + 1;
  size_t line = (reinterpret_cast<size_t>(x) + 128) & ~size_t(127);
  if (i == 0 && n >= 512) asm volatile("discard.global.L2 [%0], 128;" ::"l"(line) : "memory");
}
