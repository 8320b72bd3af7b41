// Has a variable that no device has room for, to end the judge.
// expect: crash
// also: compile
__device__ char hoard[1ull << 42];
__global__ void affine(const float* x, float* y, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] = 2 * x[i] + 1 + hoard[i];
}
