// Reads the carry of an addition that nobody made.
// expect: wrong
// also: cheating finding
__global__ void affine(const float* x, float* y, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  unsigned carry;
  asm volatile("addc.u32 %0, 0, 0;" : "=r"(carry));
  if (i < n) y[i] = carry == 0 ? 2 * x[i] + 1 : 0;
}
