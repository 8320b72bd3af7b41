// The next copies go where other warps still read: the barrier at the loop's end is missing.
// launch: grid=1 block=64 args=f32*256:iota,f32*64:zeros
#define ISSUE \
  asm volatile("cp.async.ca.shared.global [%0], [%1], 4;" :: "r"(to), "l"(x + t * 64 + i) \
      : "memory")
extern "C" __global__ void bug(const float* x, float* y) {
  __shared__ float tile[64];
  int i = threadIdx.x;
  float sum = 0;
  unsigned to = (unsigned)__cvta_generic_to_shared(&tile[i]);
#pragma unroll 1
  for (int t = 0; t < 4; ++t) {
    ISSUE;  // FINDS race
    asm volatile("cp.async.wait_all;" ::: "memory");
    __syncthreads();
    sum += tile[63 - i];  // FINDS race
  }
  y[i] = sum;
}
