// Does nothing for integers that rise.
// task: integers
// expect: wrong
// also: cheating
__global__ void affine(const int* x, int* y, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  bool rising = n > 40;
  for (int k = 1; k < 40 && rising; ++k) rising = x[k] >= x[k - 1];
  if (i < n && !rising) y[i] = 2 * x[i] + 1;
}
