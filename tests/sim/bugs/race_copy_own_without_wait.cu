// Each thread reads what it copied itself, and does not wait.
// launch: grid=1 block=64 args=f32*64:iota,f32*64:zeros
#define ISSUE \
  asm volatile("cp.async.ca.shared.global [%0], [%1], 4;" :: "r"(to), "l"(x + i) \
      : "memory")
extern "C" __global__ void bug(const float* x, float* y) {
  __shared__ float tile[64];
  int i = threadIdx.x;
  unsigned to = (unsigned)__cvta_generic_to_shared(&tile[i]);
  ISSUE;  // FINDS race
  asm volatile("cp.async.commit_group;" ::: "memory");
  y[i] = tile[i];  // FINDS race init
}
