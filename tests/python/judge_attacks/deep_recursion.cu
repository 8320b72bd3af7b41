// Recurses until the stack is used up.
// expect: finding crash
// also: timeout
__device__ __noinline__ float deep(int n, int k) {
  volatile float frame[64];
  frame[k & 63] = k;
  return k <= n - n ? frame[0] : deep(n, k - 1) + frame[k & 63];
}
__global__ void affine(const float* x, float* y, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] = 2 * x[i] + 1 + 0 * deep(n, 1 << 30);
}
