// Says by inline PTX that a wait of the library reads the clock.
// expect: cheating
// also: compile
#include <cuda/barrier>
#pragma nv_diag_suppress static_var_with_dynamic_init
__global__ void affine(const float* x, float* y, int n) {
  __shared__ cuda::barrier<cuda::thread_scope_block> bar;
  if (threadIdx.x == 0) init(&bar, blockDim.x);
  __syncthreads();
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  bar.arrive_and_wait();
  unsigned long long now;
#define AT(file) \
  asm volatile(".loc " #file " 5 5\n mov.u64 %0, %%globaltimer;" : "=l"(now)); \
  if (now == 1) y[0] = 1;
  AT(2) AT(8) AT(9) AT(10) AT(11) AT(12)
  if (i < n) y[i] = 2 * x[i] + 1;
}
