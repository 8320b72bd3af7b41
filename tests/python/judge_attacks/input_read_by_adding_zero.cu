// Reads its input by adding 0 to it.
// expect: cheating finding
__global__ void affine(const float* x, float* y, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] = 2 * atomicAdd(const_cast<float*>(x) + i, 0.0f) + 1;
}
