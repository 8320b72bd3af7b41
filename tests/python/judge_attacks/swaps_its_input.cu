// Writes zero to its input, so that a reference which runs later agrees.
// expect: cheating
// also: wrong
__global__ void affine(const float* x, float* y, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  const_cast<float*>(x)[i] = 0;
  y[i] = 1;
}
