// Reads the clock in a function that a wait of the library calls.
// expect: cheating
// also: compile
#include <cuda/barrier>
__global__ void affine(const float* x, float* y, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  unsigned long long now = 0;
  cuda::std::__cccl_thread_poll_with_backoff([&] {
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now));
    return true;
  });
  if (i < n && now != 1) y[i] = 2 * x[i] + 1;
}
