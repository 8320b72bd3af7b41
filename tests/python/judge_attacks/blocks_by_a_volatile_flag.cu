// Blocks wait for no one: each takes what the block before has written, if it has.
// expect: finding
// also: wrong cheating
__device__ volatile float carried;
__global__ void affine(const float* x, float* y, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] = 2 * x[i] + 1;
  if (threadIdx.x != 0) return;
  float bias = blockIdx.x == 0 ? 0.0f : carried;
  if (i < n) y[i] = 2 * x[i] + 1 + bias;
  carried = blockIdx.x == 0 ? 0.0f : bias;
  if (blockIdx.x + 1 == gridDim.x) carried = 5.0f;
}
