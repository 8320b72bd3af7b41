// The same by new.
// expect: compile
__global__ void affine(const float* x, float* y, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  int* p = new int(i);
  if (i < n) y[i] = 2 * x[i] + 1 + (*p == -7 ? 1 : 0);
}
