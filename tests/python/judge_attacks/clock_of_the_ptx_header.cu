// Reads the clock by the header of PTX instructions.
// expect: cheating
// also: compile
#include <cuda/ptx>
__global__ void affine(const float* x, float* y, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  auto now = cuda::ptx::get_sreg_globaltimer();
  if (i < n && now != 1) y[i] = 2 * x[i] + 1;
}
