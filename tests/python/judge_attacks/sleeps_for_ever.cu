// Sleeps until the judge loses patience.
// expect: timeout
// also: finding
__global__ void affine(const float* x, float* y, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] = 2 * x[i] + 1;
  for (;;) __nanosleep(1000000);
}
