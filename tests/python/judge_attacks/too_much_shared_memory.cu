// More shared memory than a block can have.
// expect: crash compile
__global__ void affine(const float* x, float* y, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  __shared__ float large[1 << 16];
  large[threadIdx.x] = 1;
  if (i < n) y[i] = 2 * x[i] + large[(threadIdx.x * 5) & 255];
}
