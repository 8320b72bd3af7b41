// Reads the clock by the C++ library.
// expect: cheating
#include <cuda/std/chrono>
__global__ void affine(const float* x, float* y, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  auto now = cuda::std::chrono::system_clock::now().time_since_epoch().count();
  if (i < n && now != 1) y[i] = 2 * x[i] + 1;
}
