// The tile is filled again while the copy to global memory may still read it.
// launch: grid=1 block=64 capability=9.0 args=f32*64:iota,f32*128:zeros
#define ISSUE \
  asm volatile("cp.async.bulk.global.shared::cta.bulk_group [%0], [%1], 256;" \
      :: "l"(y + 64 * t), "r"(from) : "memory")
extern "C" __global__ void bug(const float* x, float* y) {
  __shared__ alignas(16) float tile[64];
  unsigned i = threadIdx.x, from = (unsigned)__cvta_generic_to_shared(tile);
  for (int t = 0; t < 2; ++t) {
    tile[i] = x[i] + t;  // FINDS race
    asm volatile("fence.proxy.async;" ::: "memory");
    __syncthreads();
    if (i == 0) {
      ISSUE;  // FINDS race
      asm volatile("cp.async.bulk.commit_group;" ::: "memory");
    }
    __syncthreads();
  }
  if (i == 0) asm volatile("cp.async.bulk.wait_group 0;" ::: "memory");
}
