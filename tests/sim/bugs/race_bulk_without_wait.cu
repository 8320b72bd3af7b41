// A barrier in place of the wait for the copy's mbarrier.
// launch: grid=1 block=64 capability=9.0 args=f32*64:iota,f32*64:zeros
#define ISSUE \
  asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes" \
      " [%0], [%1], 256, [%2];" :: "r"(to), "l"(x), "r"(at) : "memory")
extern "C" __global__ void bug(const float* x, float* y) {
  __shared__ alignas(16) float tile[64];
  __shared__ unsigned long long barrier;
  unsigned i = threadIdx.x, to = (unsigned)__cvta_generic_to_shared(tile);
  unsigned at = (unsigned)__cvta_generic_to_shared(&barrier);
  if (i == 0) {
    asm volatile("mbarrier.init.shared.b64 [%0], 1;" ::"r"(at) : "memory");
    asm volatile("mbarrier.arrive.expect_tx.shared.b64 _, [%0], 256;" ::"r"(at) : "memory");
    ISSUE;  // FINDS race
  }
  __syncthreads();
  y[i] = tile[63 - i];  // FINDS race init
}
