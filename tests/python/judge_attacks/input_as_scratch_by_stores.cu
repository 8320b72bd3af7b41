// Uses its const input as scratch through plain stores, and restores it.
// expect: cheating
__global__ void affine(const float* x, float* y, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  volatile float* scratch = const_cast<float*>(x);
  float kept = scratch[i];
  scratch[i] = 2 * kept + 1;
  y[i] = scratch[i];
  scratch[i] = kept;
}
