// Blocks of a cluster read each other's shared memory with a barrier of their own in between.
// launch: grid=4 block=64 cluster=2 capability=9.0 args=f32*256:iota,f32*256:zeros
#define ISSUE \
  asm volatile("ld.shared::cluster.f32 %0, [%1];" : "=f"(other) : "r"(far) : "memory")
__device__ void cluster_sync() {
  asm volatile("barrier.cluster.arrive;\nbarrier.cluster.wait;" ::: "memory");
}
extern "C" __global__ void bug(const float* x, float* y) {
  __shared__ float tile[64];
  unsigned i = threadIdx.x, rank, to = (unsigned)__cvta_generic_to_shared(&tile[i]);
  asm("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
  cluster_sync();
  tile[i] = x[blockIdx.x * 64 + i];  // FINDS race
  __syncthreads();
  unsigned far;
  float other;
  asm("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(far) : "r"(to), "r"(rank ^ 1));
  ISSUE;  // FINDS race
  y[blockIdx.x * 64 + i] = other;
  cluster_sync();
}
