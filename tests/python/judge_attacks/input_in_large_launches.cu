// Takes its const input as scratch memory in large launches only.
// expect: cheating
__global__ void affine(const float* x, float* y, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n && n > 4000) {
    float kept = atomicExch(const_cast<float*>(x) + i, 3.0f);
    atomicExch(const_cast<float*>(x) + i, kept);
  }
  if (i < n) y[i] = 2 * x[i] + 1;
}
