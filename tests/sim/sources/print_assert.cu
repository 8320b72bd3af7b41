// printf with every kind of argument, and assert.
extern "C" __global__ void print_assert(const int* x, double d, const char* text, int n) {
  int i = threadIdx.x;
  printf("thread %d of %u: %5.2f %s %c %lld %%\n", i, blockDim.x, d, "text", 'x', 1ll << 40);
  if (i == 0) printf("no arguments\n");
  assert(x[i] < n);
}
