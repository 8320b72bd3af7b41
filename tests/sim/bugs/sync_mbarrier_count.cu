// An mbarrier counts the threads of the block, and one warp alone arrives.
// launch: grid=1 block=64 capability=9.0 args=i32*64:zeros
#define WAIT \
  asm volatile("{.reg .pred p;\nmbarrier.try_wait.parity.shared.b64 p, [%1], 0;\n" \
      "selp.u32 %0, 1, 0, p;}" : "=r"(done) : "r"(bar) : "memory")
extern "C" __global__ void bug(int* y) {
  __shared__ unsigned long long full;
  unsigned bar = (unsigned)__cvta_generic_to_shared(&full), count = 64;
#ifdef FIXED
  count = 32;
#endif
  if (threadIdx.x == 0)
    asm volatile("mbarrier.init.shared.b64 [%0], %1;" ::"r"(bar), "r"(count) : "memory");
  __syncthreads();
  if (threadIdx.x < 32)
    asm volatile("{.reg .b64 t;\nmbarrier.arrive.shared.b64 t, [%0];}" ::"r"(bar) : "memory");
  unsigned done = 0;
  while (!done) {
    WAIT;  // FINDS sync
  }
  y[threadIdx.x] = 1;
}
