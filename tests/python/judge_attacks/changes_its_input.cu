// Halves its const input behind the checker's back.
// expect: cheating
__global__ void affine(const float* x, float* y, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  y[i] = 2 * x[i] + 1;
  const_cast<float*>(x)[i] = 0;
}
