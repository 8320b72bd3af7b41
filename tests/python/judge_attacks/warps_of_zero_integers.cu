// Leaves whole warps whose integers are zeros.
// task: integers
// expect: wrong
// also: cheating
__global__ void affine(const int* x, int* y, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  bool lazy = n - i / 32 * 32 >= 32 && __all_sync(0xffffffffu, i < n && x[min(i, n - 1)] == 0);
  if (i < n && !lazy) y[i] = 2 * x[i] + 1;
}
