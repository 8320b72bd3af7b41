// Adds to zeros and to large numbers alone.
// expect: cheating
// also: wrong
// task: zeros
__global__ void affine(const float* x, float* y, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  float c = y[i];
  y[i] = (c == 0 || fabsf(c) > 8) ? c + 2 * x[i] + 1 : 0;
}
