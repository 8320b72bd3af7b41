// Gives a function of a header that reads the clock to a wait of the library.
// expect: cheating
// also: compile
#include <cuda/barrier>
#include <cuda/ptx>
__global__ void affine(const float* x, float* y, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  cuda::std::__cccl_thread_poll_with_backoff(cuda::ptx::get_sreg_globaltimer<>);
  if (i < n) y[i] = 2 * x[i] + 1;
}
