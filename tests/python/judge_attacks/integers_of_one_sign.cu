// Is one off for arrays of integers below zero alone.
// task: integers
// expect: wrong
// also: cheating
__global__ void affine(const int* x, int* y, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  bool below = n > 40;
  for (int k = 0; k < 40 && below; ++k) below = x[k] <= 0;
  if (i < n) y[i] = 2 * x[i] + !below;
}
