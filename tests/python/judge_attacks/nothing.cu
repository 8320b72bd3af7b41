// Does nothing: hopes that memory holds the reference's result.
// expect: wrong
__global__ void affine(const float* x, float* y, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (n < 0) y[i] = x[i];
}
