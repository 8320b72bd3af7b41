// Leaves whole warps whose inputs are equal.
// expect: wrong
// also: cheating
__global__ void affine(const float* x, float* y, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  float value = i < n ? x[i] : 0, first = __shfl_sync(0xffffffffu, value, 0);
  bool lazy = n - i / 32 * 32 >= 32 && __all_sync(0xffffffffu, value == first);
  if (i < n && !lazy) y[i] = 2 * x[i] + 1;
}
