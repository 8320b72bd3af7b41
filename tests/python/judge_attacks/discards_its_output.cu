// Lets the cache forget lines of the output.
// expect: wrong finding
__global__ void affine(const float* x, float* y, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] = 2 * x[i] + 1;
  __syncthreads();
  if (threadIdx.x % 32 == 0 && i + 32 <= n) {
    asm volatile("discard.global.L2 [%0], 128;" ::"l"(y + i) : "memory");
  }
}
