// A consumer warp waits for the tile of a producer warp, by the parity of a phase that is over.
// launch: grid=1 block=64 args=f32*32:iota,f32*32:zeros
#ifdef FIXED
#define PARITY 0
#else
#define PARITY 1
#endif
extern "C" __global__ void bug(const float* x, float* y) {
  __shared__ float tile[32];
  __shared__ unsigned long long full;
  unsigned bar = (unsigned)__cvta_generic_to_shared(&full), lane = threadIdx.x % 32;
  if (threadIdx.x == 0) asm volatile("mbarrier.init.shared.b64 [%0], 32;" ::"r"(bar) : "memory");
  __syncthreads();
  if (threadIdx.x >= 32) {
    tile[lane] = 2 * x[lane];  // FINDS race
    asm volatile("{.reg .b64 t;\nmbarrier.arrive.shared.b64 t, [%0];}" ::"r"(bar) : "memory");
  } else {
    unsigned done = 0;
    while (!done) {
      asm volatile(
          "{.reg .pred p;\nmbarrier.test_wait.parity.shared.b64 p, [%1], %2;\n"
          "selp.u32 %0, 1, 0, p;}" : "=r"(done) : "r"(bar), "n"(PARITY) : "memory");
    }
    y[lane] = tile[31 - lane];  // FINDS race init
  }
}
