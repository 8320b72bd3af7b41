// A kernel writes a table to global memory and loads it back by a bulk copy: no proxy fence.
// launch: grid=1 block=64 capability=9.0 args=i32*64:zeros,i32*64:zeros
#define LOAD \
  asm volatile("mbarrier.arrive.expect_tx.shared.b64 _, [%1], 256;\n" \
      "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%2], 256, [%1];" \
      :: "r"(to), "r"(bar), "l"(table) : "memory")
extern "C" __global__ void bug(int* table, int* y) {
  __shared__ alignas(16) int tile[64];
  __shared__ unsigned long long full;
  unsigned i = threadIdx.x, to = (unsigned)__cvta_generic_to_shared(tile);
  unsigned bar = (unsigned)__cvta_generic_to_shared(&full), done = 0;
  if (i == 0) asm volatile("mbarrier.init.shared.b64 [%0], 1;" ::"r"(bar) : "memory");
  table[i] = i * i;  // FINDS race
#ifdef FIXED
  asm volatile("fence.proxy.async;" ::: "memory");
#endif
  __syncthreads();
  if (i == 0) {
    LOAD;  // FINDS race
  }
  while (!done) {
    asm volatile(
        "{.reg .pred p;\nmbarrier.try_wait.parity.shared.b64 p, [%1], 0;\n"
        "selp.u32 %0, 1, 0, p;}" : "=r"(done) : "r"(bar) : "memory");
  }
  y[i] = tile[63 - i];
}
