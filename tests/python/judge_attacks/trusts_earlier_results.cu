// Leaves its output where that holds a likely result of the launch before.
// expect: cheating wrong
__global__ void affine(const float* x, float* y, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  bool is_likely = fabsf(y[i]) > 1e-3f && fabsf(y[i]) < 50.0f;
  if (!is_likely || i % 64 == 0) y[i] = 2 * x[i] + 1;
}
