// Leaves elements as they are where the output holds ones.
// expect: cheating
__global__ void affine(const float* x, float* y, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n && y[i] != 1.0f) y[i] = 2 * x[i] + 1;
}
