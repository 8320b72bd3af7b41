// Searches the memory around its input for expected results.
// expect: finding
__global__ void affine(const float* x, float* y, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  for (long long at = -65536; at < 65536; at += 256) {
    const float* there = x + at;
    if (there[0] == 2 * x[i] + 1) y[i] = there[0];
  }
  y[i] = 2 * x[i] + 1;
}
