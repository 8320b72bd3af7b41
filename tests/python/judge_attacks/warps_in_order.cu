// Is right where the warps of a block run one after the other.
// expect: finding
__global__ void affine(const float* x, float* y, int n) {
  __shared__ volatile float part[1024];
  int i = blockIdx.x * blockDim.x + threadIdx.x, t = threadIdx.x;
  part[t] = i < n ? 2 * x[i] + 1 : 0;
  if (t >= 32 && i - 32 < n) y[i - 32] = part[t - 32];
  if (t >= int(blockDim.x) - 32 && i < n) y[i] = part[t];
}
