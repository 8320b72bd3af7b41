// Adds to a variable that survives, a little more in each launch.
// expect: cheating
// also: finding
__device__ float drift[256];
__global__ void affine(const float* x, float* y, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  float& more = drift[i & 255];
  y[i] = 2 * x[i] + 1 + more;
  if (i < 256) more += 0.001f;
}
