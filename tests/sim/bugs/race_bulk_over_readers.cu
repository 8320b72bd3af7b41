// The next tile is loaded over the last one while other warps still read it.
// launch: grid=1 block=64 capability=9.0 args=f32*256:iota,f32*64:zeros
#define ISSUE \
  asm volatile("cp.async.bulk.shared::cluster.global" \
      ".mbarrier::complete_tx::bytes [%0], [%1], 256, [%2];" \
      :: "r"(to), "l"(x + 64 * t), "r"(at) : "memory")
extern "C" __global__ void bug(const float* x, float* y) {
  __shared__ alignas(16) float tile[64];
  __shared__ unsigned long long barrier;
  unsigned i = threadIdx.x, to = (unsigned)__cvta_generic_to_shared(tile);
  unsigned at = (unsigned)__cvta_generic_to_shared(&barrier);
  if (i == 0) asm volatile("mbarrier.init.shared.b64 [%0], 1;" ::"r"(at) : "memory");
  __syncthreads();
  float sum = 0;
#pragma unroll 1
  for (int t = 0; t < 4; ++t) {
    if (i == 0) {
      asm volatile("mbarrier.arrive.expect_tx.shared.b64 _, [%0], 256;" ::"r"(at) : "memory");
      ISSUE;  // FINDS race
      asm volatile("{\n.reg .pred p;\nW: mbarrier.try_wait.parity.shared.b64 p, [%0], %1;\n"
                   "@!p bra W;\n}" ::"r"(at), "r"(t & 1) : "memory");
    }
    __syncthreads();
    sum += tile[63 - i];  // FINDS race
  }
  y[i] = sum;
}
