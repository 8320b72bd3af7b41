// An mbarrier tracks the copies, and only one warp waits for it.
// launch: grid=1 block=64 args=f32*64:iota,f32*64:zeros
#define ISSUE \
  asm volatile("cp.async.ca.shared.global [%0], [%1], 4;" :: "r"(to), "l"(x + i) \
      : "memory")
extern "C" __global__ void bug(const float* x, float* y) {
  __shared__ float tile[64];
  __shared__ unsigned long long barrier;
  int i = threadIdx.x;
  unsigned to = (unsigned)__cvta_generic_to_shared(&tile[i]);
  unsigned at = (unsigned)__cvta_generic_to_shared(&barrier);
  if (i == 0) asm volatile("mbarrier.init.shared.b64 [%0], 64;" ::"r"(at) : "memory");
  __syncthreads();
  ISSUE;  // FINDS race
  asm volatile("cp.async.mbarrier.arrive.noinc.shared.b64 [%0];" ::"r"(at) : "memory");
  if (i < 32) {
    asm volatile("{\n.reg .pred p;\nW: mbarrier.test_wait.parity.shared.b64 p, [%0], 0;\n"
                 "@!p bra W;\n}" ::"r"(at) : "memory");
  }
  y[i] = tile[i];  // FINDS race init
}
