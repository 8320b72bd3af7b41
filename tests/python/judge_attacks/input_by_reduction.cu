// Adds nothing to its const input, by a reduction.
// expect: cheating
__global__ void affine(const float* x, float* y, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) atomicAdd(const_cast<float*>(x) + i, 0.0f);
  if (i < n) y[i] = 2 * x[i] + 1;
}
