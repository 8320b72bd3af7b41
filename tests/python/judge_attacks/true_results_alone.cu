// Writes true, and relies on false in its output.
// expect: wrong cheating
// task: less
__global__ void less(const float* x, const float* z, bool* y, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n && x[i] < z[i]) y[i] = true;
}
