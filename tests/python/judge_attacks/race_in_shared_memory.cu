// Reads what another warp writes without a barrier.
// expect: finding
__global__ void affine(const float* x, float* y, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  __shared__ float part[256];
  part[threadIdx.x] = i < n ? 2 * x[i] + 1 : 0;
  float mine = part[threadIdx.x];
  if (i < n) y[i] = mine + 0 * part[255 - threadIdx.x];
}
