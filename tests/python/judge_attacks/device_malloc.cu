// Memory of the device's heap survives launches.
// expect: compile
__global__ void affine(const float* x, float* y, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  int* p = static_cast<int*>(malloc(4));
  if (p != nullptr) *p = 1;
  if (i < n) y[i] = 2 * x[i] + 1;
}
