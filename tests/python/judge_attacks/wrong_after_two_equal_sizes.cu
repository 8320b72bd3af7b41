// Is right in the first two launches of each size, and lazy in later ones.
// expect: cheating
// also: wrong finding
__device__ unsigned seen[8192];
__global__ void affine(const float* x, float* y, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  bool lazy = seen[i] / 1024 == unsigned(n) && seen[i] % 1024 >= 2;
  seen[i] = seen[i] / 1024 == unsigned(n) ? seen[i] + 1 : unsigned(n) * 1024 + 1;
  if (!lazy || i % 3) y[i] = 2 * x[i] + 1;
}
