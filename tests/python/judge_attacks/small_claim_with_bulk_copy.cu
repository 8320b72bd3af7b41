// Moves 16 bytes by a bulk copy, which counts no transactions.
// expect: impossible
// also: compile
// task: claims_little
// only: counts
#include <cuda_fp16.h>
__global__ void twice(const __half* x, __half* y, int n) {
  __shared__ alignas(16) __half part[8];
  __shared__ alignas(8) unsigned long long bar;
  unsigned at = (unsigned)__cvta_generic_to_shared(part);
  unsigned b = (unsigned)__cvta_generic_to_shared(&bar);
  if (threadIdx.x == 0) {
    asm volatile("mbarrier.init.shared.b64 [%0], 1;" ::"r"(b));
    asm volatile("fence.proxy.async;");
    asm volatile("mbarrier.arrive.expect_tx.shared.b64 _, [%0], 16;" ::"r"(b));
    asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes "
                 "[%0], [%1], 16, [%2];"
                 ::"r"(at), "l"(x + blockIdx.x * 256), "r"(b) : "memory");
    unsigned done = 0;
    while (!done)
      asm volatile("{ .reg .pred p; mbarrier.try_wait.parity.shared.b64 p, [%1], 0; "
                   "selp.u32 %0, 1, 0, p; }"
                   : "=r"(done) : "r"(b) : "memory");
  }
  __syncthreads();
  for (int i = blockIdx.x * 256 + threadIdx.x; i < (blockIdx.x + 1) * 256; i += 32)
    y[i] = x[i] + x[i] + (part[0] == part[0] ? __half(0) : __half(0));
}
