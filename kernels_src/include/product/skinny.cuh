// Shared by the products with few rows: the problem, the end of a sum, products of tiles.
#pragma once

#include <kernwright/elements.cuh>
#include <kernwright/mbarrier.cuh>
#include <kernwright/overlap.cuh>
#include <kernwright/product_epilogue.cuh>

namespace kernwright {

/// out[b, m, n] is what the epilogue makes of sum_k x[b, m, k] w[b, n, k]; its arrays may be absent
/// (null). Distances are in elements; `out` and `partial` are row-major. With more than one of
/// `splits` their partial results go to partial[split, b, m, n]. Kernels with RowNorm take an RMS
/// norm of x, whose weight is `norm`.
struct SkinnyProblem {
  const void* x;
  void* out;
  float* partial;
  const void* norm;
  Int64 x_row, x_batch;
  UInt64 batches;
  unsigned m, n, k, splits;
  unsigned ahead;  ///< loads of a thread fetched to the second level before it waits
  float eps;       ///< of the norm
  ProductEpilogueValues epilogue;
};

/// Weights may be fetched to the second level of cache before pdl_launch_then_wait(), as what is
/// written there later is seen there. x, bias and residual are read, and results written, after it.
__device__ __forceinline__ void fetch_ahead(const void* from) {
  asm volatile("prefetch.global.L2 [%0];" ::"l"(from));
}

/// The result's element for a sum.
template <typename T, typename Act, bool kPlain = false>
__device__ __forceinline__ T finished(const SkinnyProblem& p, UInt64 batch, unsigned m, unsigned n,
                                      float sum) {
  if constexpr (kPlain) return from_compute<T>(Act::value(sum, MemoryOperands<T>::knobs()));
  const MemoryOperands<T> operands{p.epilogue, batch, m, n};
  return from_compute<T>(apply_epilogue<Act>(p.epilogue, sum, operands));
}

template <typename T, typename Act>
__device__ __forceinline__ void finish_sum(const SkinnyProblem& p, UInt64 batch, unsigned m,
                                           unsigned n, float sum) {
  static_cast<T*>(p.out)[(batch * p.m + m) * p.n + n] = finished<T, Act>(p, batch, m, n, sum);
}

/// Stores gate * up of two accumulators, of row n and of the row that is half of all rows further
/// on: each is rounded first, as a kernel of its own rounds it.
template <typename T, typename Gate>
__device__ __forceinline__ void finish_gate(const SkinnyProblem& p, unsigned n, float gate,
                                            float up) {
  const float g = to_compute(finished<T, Same>(p, 0, 0, n, gate));
  const float u = to_compute(finished<T, Same>(p, 0, 0, n + p.n / 2, up));
  static_cast<T*>(p.out)[n] = from_compute<T>(Gate::value(g, MemoryOperands<T>::knobs()) * u);
}

/// Four results that follow each other along n, the first at a multiple of four and inside.
template <typename T>
__device__ __forceinline__ void store_four(const SkinnyProblem& p, UInt64 batch, unsigned m,
                                           unsigned n, const Pack<T, 4>& four) {
  T* const out = static_cast<T*>(p.out) + (batch * p.m + m) * p.n + n;
  if (p.n % 4 == 0) {
    *reinterpret_cast<Pack<T, 4>*>(out) = four;
    return;
  }
#pragma unroll
  for (unsigned i = 0; i < 4; ++i) {
    if (n + i < p.n) out[i] = four.value[i];
  }
}

/// Stores accumulators with the epilogue.
template <typename T, typename Act>
__device__ __forceinline__ void finish_four(const SkinnyProblem& p, UInt64 batch, unsigned m,
                                            unsigned n, const float (&accumulators)[4]) {
  if (n >= p.n) return;
  Pack<T, 4> pack;
#pragma unroll
  for (unsigned i = 0; i < 4; ++i)
    pack.value[i] = finished<T, Act>(p, batch, m, min(n + i, p.n - 1), accumulators[i]);
  store_four(p, batch, m, n, pack);
}

/// Stores the sum of an element, or what follows from it.
template <typename T, typename Act>
__device__ __forceinline__ void store_sum(const SkinnyProblem& p, UInt64 batch, unsigned m,
                                          unsigned n, float sum) {
  if (p.splits == 1) {
    finish_sum<T, Act>(p, batch, m, n, sum);
  } else {
    p.partial[((blockIdx.y * p.batches + batch) * p.m + m) * p.n + n] = sum;
  }
}

/// The row, among all tiles of a warp, of a thread's sum `i` of tile `r`: tiles are stacked.
struct TilesBelow {
  __device__ __forceinline__ static int row(int r, int i) {
    return r * 16 + i / 2 * 8 + static_cast<int>(threadIdx.x) % 32 / 4;
  }
};

/// A warp's accumulators of tile `c` of columns into shared memory, a column behind the other.
template <typename Rows, int Pitch, int RowTiles, int ColTiles>
__device__ __forceinline__ void spread_accumulators(
    float* shared, int c, const float (&accumulators)[RowTiles][ColTiles][4]) {
#pragma unroll
  for (int r = 0; r < RowTiles; ++r)
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      const int column = static_cast<int>(threadIdx.x) % 4 * 2 + i % 2;
      shared[column * Pitch + Rows::row(r, i)] = accumulators[r][c][i];
    }
}

/// Adds the accumulators of all warps in their order, one tile of columns at a time.
template <typename T, typename Act, int Warps, typename Rows = TilesBelow, int RowTiles,
          int ColTiles>
__device__ __forceinline__ void add_warps(const SkinnyProblem& p, UInt64 batch, unsigned first_row,
                                          const float (&accumulators)[RowTiles][ColTiles][4]) {
  constexpr int kRows = 16 * RowTiles, kPitch = kRows + 4;
  __shared__ float shared[Warps][8 * kPitch];
#pragma unroll
  for (int c = 0; c < ColTiles; ++c) {
    if (c * 8 >= p.m) break;
    spread_accumulators<Rows, kPitch>(shared[threadIdx.x / 32], c, accumulators);
    __syncthreads();
    for (int i = threadIdx.x; i < 8 * kRows; i += Warps * 32) {
      const int column = i / kRows, row = i % kRows;
      const unsigned m = c * 8 + column, n = first_row + row;
      float sum = 0;
#pragma unroll
      for (int w = 0; w < Warps; ++w) sum += shared[w][column * kPitch + row];
      if (m < p.m && n < p.n) store_sum<T, Act>(p, batch, m, n, sum);
    }
    __syncthreads();
  }
}

/// A thread of blocks of 256 adds the parts that `splits` blocks had of a sum, in their order.
template <typename T, typename Act>
__device__ __forceinline__ void add_parts(const SkinnyProblem& p) {
  const UInt64 size = p.batches * p.m * p.n;
  const UInt64 i = static_cast<UInt64>(blockIdx.x) * 256 + threadIdx.x;
  pdl_launch_then_wait();
  if (i >= size) return;
  float sum = 0;
  for (unsigned split = 0; split < p.splits; ++split) sum += p.partial[split * size + i];
  const UInt64 row = i / p.n;
  finish_sum<T, Act>(p, row / p.m, static_cast<unsigned>(row % p.m), static_cast<unsigned>(i % p.n),
                     sum);
}

// ---- the parts of k that the blocks of a cluster have

/// No block goes on, or ends, while another of its `blocks` still reads its shared memory. The
/// arrival releases: a relaxed arrival could come before reads whose numbers nobody waits for.
__device__ __forceinline__ void leave_cluster(unsigned blocks) {
#if __CUDA_ARCH__ >= 900
  if (blocks == 1) return;
  asm volatile("barrier.cluster.arrive.release;\nbarrier.cluster.wait.acquire;" ::: "memory");
#endif
}
/// The number at an equal offset in the shared memory of block `rank` of the cluster.
__device__ __forceinline__ float read_block(const float* local, unsigned rank) {
#if __CUDA_ARCH__ >= 900
  unsigned there;
  float value;
  asm volatile("mapa.shared::cluster.u32 %0, %1, %2;"
               : "=r"(there)
               : "r"(shared_address(local)), "r"(rank));
  asm volatile("ld.shared::cluster.f32 %0, [%1];" : "=f"(value) : "r"(there) : "memory");
  return value;
#else
  return *local;
#endif
}

/// Four neighbouring numbers, at a multiple of 16 bytes.
__device__ __forceinline__ float4 read_four(const float* local, unsigned rank) {
#if __CUDA_ARCH__ >= 900
  unsigned there;
  float4 value;
  asm volatile("mapa.shared::cluster.u32 %0, %1, %2;"
               : "=r"(there)
               : "r"(shared_address(local)), "r"(rank));
  asm volatile("ld.shared::cluster.v4.f32 {%0, %1, %2, %3}, [%4];"
               : "=f"(value.x), "=f"(value.y), "=f"(value.z), "=f"(value.w)
               : "r"(there)
               : "memory");
  return value;
#else
  return *reinterpret_cast<const float4*>(local);
#endif
}

// ---- copies and products of tiles

/// 16, 8 or 4 bytes to shared memory, in the background; zeros where `valid` is false.
template <int kBytes = 16>
__device__ __forceinline__ void copy_later(unsigned to, const void* from, bool valid) {
  if constexpr (kBytes == 16) {
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(to), "l"(from),
                 "r"(valid ? 16 : 0)
                 : "memory");
  } else {
    asm volatile("cp.async.ca.shared.global [%0], [%1], %2, %3;" ::"r"(to), "l"(from), "n"(kBytes),
                 "r"(valid ? kBytes : 0)
                 : "memory");
  }
}
__device__ __forceinline__ void end_copies() {
  asm volatile("cp.async.commit_group;" ::: "memory");
}
template <int Left>
__device__ __forceinline__ void wait_for_copies() {
  asm volatile("cp.async.wait_group %0;" ::"n"(Left) : "memory");
}

/// `bytes` to shared memory, in the background: a multiple of 16, at multiples of 16. The barrier
/// counts them. Compute capability 9.0 and newer.
__device__ __forceinline__ void copy_bulk(void* to, const void* from, unsigned bytes,
                                          Mbarrier& bar) {
#if __CUDA_ARCH__ >= 900
  asm volatile(
      "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::
          "r"(shared_address(to)),
      "l"(from), "r"(bytes), "r"(shared_address(&bar))
      : "memory");
#endif
}
/// Prefetches the bytes into L2, as fetch_ahead().
__device__ __forceinline__ void fetch_bulk(const void* from, unsigned bytes) {
#if __CUDA_ARCH__ >= 900
  asm volatile("cp.async.bulk.prefetch.L2.global [%0], %1;" ::"l"(from), "r"(bytes) : "memory");
#endif
}

/// c += a * b for 16 rows of a and 8 columns of b, 16 deep.
__device__ __forceinline__ void multiply_tile(BFloat16, float (&c)[4], unsigned a0, unsigned a1,
                                              unsigned a2, unsigned a3, unsigned b0, unsigned b1) {
  asm("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, "
      "{%8, %9}, {%0, %1, %2, %3};"
      : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
      : "r"(a0), "r"(a1), "r"(a2), "r"(a3), "r"(b0), "r"(b1));
}
__device__ __forceinline__ void multiply_tile(Float16, float (&c)[4], unsigned a0, unsigned a1,
                                              unsigned a2, unsigned a3, unsigned b0, unsigned b1) {
  asm("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, "
      "{%8, %9}, {%0, %1, %2, %3};"
      : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
      : "r"(a0), "r"(a1), "r"(a2), "r"(a3), "r"(b0), "r"(b1));
}

}  // namespace kernwright
