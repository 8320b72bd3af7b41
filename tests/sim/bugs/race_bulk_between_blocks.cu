// A block sends its tile to its neighbour by a bulk copy and fills the tile anew at once.
// launch: grid=2 block=64 cluster=2 capability=9.0 args=i32*64:iota,i32*64:zeros
#define SEND \
  asm volatile("{.reg .b32 a, b;\nmapa.shared::cluster.u32 a, %0, 1;\n" \
      "mapa.shared::cluster.u32 b, %1, 1;\ncp.async.bulk.shared::cluster.shared::cta" \
      ".mbarrier::complete_tx::bytes [a], [%0], 256, [b];}" :: "r"(at), "r"(bar) : "memory")
__device__ void sync() {
  asm volatile("barrier.cluster.arrive;\nbarrier.cluster.wait;" ::: "memory");
}
extern "C" __global__ void bug(const int* x, int* y) {
  __shared__ alignas(16) int tile[64];
  __shared__ unsigned long long full;
  unsigned i = threadIdx.x, at = (unsigned)__cvta_generic_to_shared(tile);
  unsigned bar = (unsigned)__cvta_generic_to_shared(&full), done = 0;
  if (i == 0)
    asm volatile("mbarrier.init.shared.b64 [%0], 1;\n"
                 "mbarrier.arrive.expect_tx.shared.b64 _, [%0], 256;" ::"r"(bar) : "memory");
  if (blockIdx.x == 0) tile[i] = x[i];
  asm volatile("fence.proxy.async;" ::: "memory");
  sync();
  if (blockIdx.x == 0 && i == 0) {
    SEND;  // FINDS race
  }
#ifndef FIXED
  if (blockIdx.x == 0) tile[i] = 2 * x[i];  // FINDS race
#endif
  while (blockIdx.x == 1 && !done) {
    asm volatile(
        "{.reg .pred p;\nmbarrier.try_wait.parity.shared.b64 p, [%1], 0;\n"
        "selp.u32 %0, 1, 0, p;}" : "=r"(done) : "r"(bar) : "memory");
  }
  if (blockIdx.x == 1) y[i] = tile[63 - i];
  sync();
#ifdef FIXED
  if (blockIdx.x == 0) tile[i] = 2 * x[i];
#endif
}
