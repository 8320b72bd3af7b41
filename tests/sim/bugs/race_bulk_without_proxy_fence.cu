// Threads fill a tile and a bulk copy stores it: the barrier alone does not make it visible there.
// launch: grid=1 block=64 capability=9.0 args=f32*64:iota,f32*64:zeros
#define ISSUE \
  asm volatile("cp.async.bulk.global.shared::cta.bulk_group [%0], [%1], 256;" \
      :: "l"(y), "r"(from) : "memory")
extern "C" __global__ void bug(const float* x, float* y) {
  __shared__ alignas(16) float tile[64];
  unsigned i = threadIdx.x, from = (unsigned)__cvta_generic_to_shared(tile);
  tile[i] = 2 * x[i];  // FINDS race
  __syncthreads();
  if (i == 0) {
    ISSUE;  // FINDS race
    asm volatile("cp.async.bulk.commit_group;\ncp.async.bulk.wait_group 0;" ::: "memory");
  }
}
