// Looks at what its output holds, and spares elements that look used.
// expect: cheating wrong
__global__ void affine(const float* x, float* y, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  if ((__float_as_uint(y[i]) & 0xfffu) == 0x123u) return;
  y[i] = 2 * x[i] + 1;
}
