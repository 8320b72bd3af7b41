// Shuffles with a mask that leaves out lanes which take part.
// expect: finding
// also: timeout
__global__ void affine(const float* x, float* y, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  float mine = i < n ? 2 * x[i] + 1 : 0;
  float other = __shfl_sync(0x0000ffff, mine, threadIdx.x & 15);
  if (i < n) y[i] = mine + 0 * other;
}
