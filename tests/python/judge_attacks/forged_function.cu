// Calls an address that is no function.
// expect: finding
// also: crash
__global__ void affine(const float* x, float* y, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  auto other = reinterpret_cast<float (*)(float)>(reinterpret_cast<unsigned long long>(x) + 64);
  if (i < n) y[i] = other(x[i]);
}
