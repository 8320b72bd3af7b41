// A block may be over, and its shared memory another one's, while its neighbour still reads there.
// launch: grid=4 block=64 cluster=2 capability=9.0 args=f32*256:iota,f32*256:zeros
__device__ float far(const float* from, unsigned rank) {
  const float* there;
  asm("mapa.u64 %0, %1, %2;" : "=l"(there) : "l"(from), "r"(rank));
  return *there;  // FINDS race
}
extern "C" __global__ void bug(const float* x, float* y) {
  __shared__ float tile[64];
  unsigned i = threadIdx.x, rank;
  asm("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
  tile[i] = x[blockIdx.x * 64 + i];
  asm volatile("barrier.cluster.arrive;\nbarrier.cluster.wait;" ::: "memory");
  y[blockIdx.x * 64 + i] = far(&tile[63 - i], rank ^ 1);
}
