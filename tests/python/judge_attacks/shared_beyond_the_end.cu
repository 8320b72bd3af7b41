// Writes shared memory beyond its array.
// expect: finding
__global__ void affine(const float* x, float* y, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  __shared__ float part[256];
  part[threadIdx.x + (n > 0 ? 65536 : 0)] = 1;
  if (i < n) y[i] = 2 * x[i] + 1 + 0 * part[0];
}
