// The last warp to arrive finishes the block, in place of a barrier.
// expect: finding
// also: wrong cheating
__global__ void affine(const float* x, float* y, int n) {
  __shared__ volatile float part[256];
  int i = blockIdx.x * blockDim.x + threadIdx.x, t = threadIdx.x;
  part[t] = i < n ? 2 * x[i] + 1 : 0;
  __syncwarp();
  if (t >= 224) {
    for (int k = t - 224; k < 256; k += 32) {
      int j = blockIdx.x * blockDim.x + k;
      if (j < n) y[j] = part[k];
    }
  }
}
