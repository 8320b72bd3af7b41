// Right for thirty calls, then writes far outside of its array.
// expect: finding
// also: crash
__device__ int calls[64];
__global__ void affine(const float* x, float* y, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  y[i] = 2 * x[i] + 1;
  if (i < 64 && ++calls[i] > 30) y[i + (1ll << 40)] = 1;
}
