// Two stages: the wait lets the last group stay under way, and that is the one that is read.
// launch: grid=1 block=64 args=f32*256:iota,f32*64:zeros
#define ISSUE \
  asm volatile("cp.async.ca.shared.global [%0], [%1], 4;" :: "r"(target), "l"(from) \
      : "memory")
__device__ void copy(float* to, const float* from) {
  unsigned target = (unsigned)__cvta_generic_to_shared(to);
  ISSUE;  // FINDS race
  asm volatile("cp.async.commit_group;" ::: "memory");
}
extern "C" __global__ void bug(const float* x, float* y) {
  __shared__ float stage[2][64];
  int i = threadIdx.x;
  float sum = 0;
  copy(&stage[0][i], x + i);
  for (int t = 0; t < 4; ++t) {
    if (t + 1 < 4) copy(&stage[(t + 1) & 1][i], x + (t + 1) * 64 + i);
    asm volatile("cp.async.wait_group 1;" ::: "memory");
    __syncthreads();
    sum += stage[t & 1][63 - i];  // FINDS race
    __syncthreads();
  }
  y[i] = sum;
}
