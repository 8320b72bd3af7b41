// Writes its const input with the values that it has.
// expect: cheating
__global__ void affine(const float* x, float* y, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  float kept = x[i];
  if (i == n - 1) atomicCAS(reinterpret_cast<int*>(const_cast<float*>(x)) + i, 12345, 54321);
  y[i] = 2 * kept + 1;
}
