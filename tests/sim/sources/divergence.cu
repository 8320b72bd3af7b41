// Nested loops with break, continue and early return.
extern "C" __global__ void divergence(const int* x, int* y, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  int v = x[i], steps = 0;
  while (v != 1) {
    if (v < 0) break;
    if (++steps > 1000) { y[i] = -1; return; }
    if (v & 1) { v = 3 * v + 1; continue; }
    v >>= 1;
  }
  for (int j = 0; j < (i & 7); ++j)
    for (int k = 0; k < j; ++k) {
      if ((k ^ j) == 5) goto done;
      steps += k * j;
    }
done:
  y[i] = steps;
}
