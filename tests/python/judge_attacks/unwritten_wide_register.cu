// The same with 64 bits, and the upper half alone.
// expect: wrong
// also: cheating finding
__global__ void affine(const float* x, float* y, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  unsigned long long left;
  asm volatile("{ .reg .b64 t; shr.b64 %0, t, 40; }" : "=l"(left));
  if (i < n) y[i] = left == 0 ? 2 * x[i] + 1 : 0;
}
