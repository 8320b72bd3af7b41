// Cooperative groups, barriers, pipelines, votes and shuffles of every kind.
#include <cooperative_groups.h>
#include <cooperative_groups/memcpy_async.h>
#include <cooperative_groups/reduce.h>
#include <cooperative_groups/scan.h>
#include <cuda/barrier>
#include <cuda/pipeline>
namespace cg = cooperative_groups;
#define KERNEL(name) extern "C" __global__ void name
KERNEL(grid_sync)(int* x) {
  auto grid = cg::this_grid();
  x[grid.thread_rank()] = (int)grid.block_rank();
  grid.sync();
  x[grid.thread_rank()] += x[(grid.thread_rank() + blockDim.x) % grid.num_threads()];
}
KERNEL(tiles)(int* x) {
  auto block = cg::this_thread_block();
  auto tile = cg::tiled_partition<8>(block);
  auto pair = cg::tiled_partition<2>(tile);
  int v = x[block.thread_rank()];
  v += tile.shfl_down(v, 1) + pair.shfl_xor(v, 1) + (int)tile.ballot(v > 2) + tile.any(v) + (int)tile.match_any(v);
  tile.sync();
  x[block.thread_rank()] = v + cg::reduce(tile, v, cg::plus<int>()) + cg::reduce(pair, v, cg::less<int>());
}
KERNEL(scans)(int* x, float* f) {
  auto warp = cg::tiled_partition<32>(cg::this_thread_block());
  int t = threadIdx.x;
  x[t] = cg::inclusive_scan(warp, x[t]) + cg::exclusive_scan(warp, x[t], cg::bit_xor<int>()) + cg::reduce(warp, x[t], cg::bit_and<int>());
  f[t] = cg::reduce(warp, f[t], cg::greater<float>());
}
KERNEL(coalesced)(int* x) {
  if (x[threadIdx.x] > 3) {
    auto active = cg::coalesced_threads();
    if (active.thread_rank() == 0) atomicAdd(x, (int)active.size());
    x[threadIdx.x] = active.shfl(x[threadIdx.x], 0) + cg::reduce(active, 1, cg::plus<int>());
  }
  auto parts = cg::labeled_partition(cg::coalesced_threads(), x[threadIdx.x] & 3);
  x[threadIdx.x] += (int)parts.size();
}
KERNEL(group_copy)(const int4* x, int4* y) {
  __shared__ int4 buffer[64];
  auto block = cg::this_thread_block();
  cg::memcpy_async(block, buffer, x, sizeof buffer);
  cg::wait(block);
  y[threadIdx.x] = buffer[63 - threadIdx.x];
}
KERNEL(pipelined)(const float* x, float* y, int n) {
  __shared__ float stage[2][64];
  __shared__ cuda::pipeline_shared_state<cuda::thread_scope_block, 2> state;
  auto block = cg::this_thread_block();
  auto pipe = cuda::make_pipeline(block, &state);
  float sum = 0;
  for (int i = 0, next = 0; i < n; ++i) {
    for (; next < n && next < i + 2; ++next) {
      pipe.producer_acquire();
      cuda::memcpy_async(block, stage[next & 1], x + next * 64, sizeof stage[0], pipe);
      pipe.producer_commit();
    }
    pipe.consumer_wait();
    sum += stage[i & 1][63 - threadIdx.x];
    pipe.consumer_release();
  }
  y[threadIdx.x] = sum;
}
KERNEL(own_pipeline)(const float4* x, float4* y) {
  __shared__ float4 stage[64];
  auto pipe = cuda::make_pipeline();
  pipe.producer_acquire();
  cuda::memcpy_async(stage + threadIdx.x, x + threadIdx.x, cuda::aligned_size_t<16>(16), pipe);
  pipe.producer_commit();
  cuda::pipeline_consumer_wait_prior<0>(pipe);
  __syncthreads();
  y[threadIdx.x] = stage[63 - threadIdx.x];
}
KERNEL(phases)(int* x) {
  __shared__ cuda::barrier<cuda::thread_scope_block> bar;
  if (threadIdx.x == 0) init(&bar, blockDim.x);
  __syncthreads();
  auto token = bar.arrive();
  x[threadIdx.x] += 1;
  bar.wait(cuda::std::move(token));
  bar.wait_parity(0);
  bar.arrive_and_drop();
}
KERNEL(shuffles)(int* x, double* d, unsigned long long* l) {
  int t = threadIdx.x;
  x[t] = __shfl_sync(~0u, x[t], 3) + __shfl_up_sync(~0u, x[t], 1, 8) + __shfl_down_sync(~0u, x[t], 2, 16) + __shfl_xor_sync(~0u, x[t], 4);
  d[t] = __shfl_sync(~0u, d[t], 5) + __shfl_xor_sync(~0u, d[t], 1);
  l[t] = __shfl_down_sync(~0u, l[t], 1) + __match_any_sync(~0u, l[t]);
}
KERNEL(votes_of_all)(int* x, unsigned* u) {
  int t = threadIdx.x, p;
  u[t] = __ballot_sync(~0u, x[t]) + __all_sync(~0u, x[t]) + __any_sync(~0u, x[t]) + __uni_sync(~0u, x[t]) + __activemask();
  u[t] += __match_all_sync(~0u, x[t], &p) + p + __match_any_sync(~0u, x[t]);
  __syncwarp();
#if __CUDA_ARCH__ >= 800
  u[t] += __reduce_add_sync(~0u, u[t]) + __reduce_max_sync(~0u, x[t]) + __reduce_xor_sync(~0u, u[t]) + __reduce_min_sync(~0u, u[t]);
#endif
}
KERNEL(named_barriers)(int* x) {
  int r, p = threadIdx.x & 1;
  asm volatile("barrier.sync 3; bar.sync 4, 64; barrier.arrive 5, 128; barrier.sync.aligned 5, 128;" ::: "memory");
  asm volatile("{ .reg .pred q; setp.ne.s32 q, %1, 0; bar.red.popc.u32 %0, 6, 64, q; }" : "=r"(r) : "r"(p));
  asm volatile("{ .reg .pred q; setp.ne.s32 q, %1, 0; barrier.red.or.pred q, 7, !q; selp.s32 %0, %0, 9, q; }" : "+r"(r) : "r"(p));
  x[threadIdx.x] = r + __syncthreads_count(p) + __syncthreads_and(p) + __syncthreads_or(p);
}
