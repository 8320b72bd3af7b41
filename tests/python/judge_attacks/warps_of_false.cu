// Leaves whole warps of which no input is true.
// task: inverse
// expect: wrong
// also: cheating
__global__ void inverse(const bool* x, bool* y, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  bool any = __any_sync(0xffffffffu, i < n && x[min(i, n - 1)]), whole = n - i / 32 * 32 >= 32;
  if (i < n && (any || !whole)) y[i] = !x[i];
}
