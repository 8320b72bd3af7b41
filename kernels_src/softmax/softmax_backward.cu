// Gradients of softmax and log_softmax, as softmax_backward.h states them.
#include <kernwright/elements.cuh>
#include <kernwright/reduce.cuh>
#include <kernwright/rows.cuh>

using namespace kernwright;

/// An element's contribution to the sum of the row.
template <bool Log, typename C>
__device__ __forceinline__ C summand(C dy, C y) {
  return Log ? dy : dy * y;
}
template <bool Log, typename C>
__device__ __forceinline__ C gradient(C dy, C y, C sum, C scale) {
  return scale * (Log ? dy - math_exp(y) * sum : y * (dy - sum));
}

/// Rows of up to V * Items * Width elements, Threads / Width at a time.
template <typename T, int V, int Items, int Width, int Threads, bool Log>
__global__ void __launch_bounds__(Threads)
    softmax_backward_rows(T* __restrict__ dx, const T* __restrict__ dy, const T* __restrict__ y,
                          long long rows, int n, Compute<T> scale) {
  using C = Compute<T>;
  constexpr int kRows = Threads / Width;
  const int lane = threadIdx.x % Width, packs = n / V;
  const long long step = static_cast<long long>(gridDim.x) * kRows;
  for (long long first = static_cast<long long>(blockIdx.x) * kRows; first < rows; first += step) {
    const long long row = first + threadIdx.x / Width;
    const int row_packs = row < rows ? packs : 0;
    C in[V * Items], out[V * Items];
    load_held<V, Items, Width>(in, dy + row * n, lane, row_packs, C(0));
    load_held<V, Items, Width>(out, y + row * n, lane, row_packs, C(0));
    C sum = 0;
    for_held<V, Items, Width>(lane, row_packs,
                              [&](int slot, int) { sum += summand<Log>(in[slot], out[slot]); });
    sum = row_reduce<Width, Threads>(sum, Sum(), C(0));
    store_held<V, Items, Width>(dx + row * n, lane, row_packs, [&](int slot, int) {
      return gradient<Log>(in[slot], out[slot], sum, scale);
    });
  }
}

/// Block c of a row writes the sum of chunk c, V * Items * Threads elements.
template <typename T, int V, int Items, int Threads, bool Log>
__global__ void __launch_bounds__(Threads)
    softmax_backward_sums(Compute<T>* __restrict__ sums, const T* __restrict__ dy,
                          const T* __restrict__ y, long long n, long long chunks) {
  using C = Compute<T>;
  constexpr int kChunk = V * Items * Threads;
  const long long first = blockIdx.x % chunks * kChunk, at = blockIdx.x / chunks * n + first;
  const int packs = static_cast<int>((n - first < kChunk ? n - first : kChunk) / V);
  C in[V * Items], out[V * Items];
  load_held<V, Items, Threads>(in, dy + at, threadIdx.x, packs, C(0));
  load_held<V, Items, Threads>(out, y + at, threadIdx.x, packs, C(0));
  C sum = 0;
  for_held<V, Items, Threads>(threadIdx.x, packs,
                              [&](int slot, int) { sum += summand<Log>(in[slot], out[slot]); });
  sum = block_reduce<Threads>(sum, Sum(), C(0));
  if (threadIdx.x == 0) sums[blockIdx.x] = sum;
}

/// Block c of a row adds the sums of all chunks and writes the results of chunk c.
template <typename T, int V, int Items, int Threads, bool Log>
__global__ void __launch_bounds__(Threads)
    softmax_backward_finish(T* __restrict__ dx, const T* __restrict__ dy, const T* __restrict__ y,
                            long long n, long long chunks, Compute<T> scale,
                            const Compute<T>* __restrict__ sums) {
  using C = Compute<T>;
  constexpr int kChunk = V * Items * Threads;
  const long long row = blockIdx.x / chunks, first = blockIdx.x % chunks * kChunk;
  const long long at = row * n + first;
  const int packs = static_cast<int>((n - first < kChunk ? n - first : kChunk) / V);
  C in[V * Items], out[V * Items];
  load_held<V, Items, Threads>(in, dy + at, threadIdx.x, packs, C(0));
  load_held<V, Items, Threads>(out, y + at, threadIdx.x, packs, C(0));
  C sum = 0;
  for (long long c = threadIdx.x; c < chunks; c += Threads) sum += sums[row * chunks + c];
  sum = block_reduce<Threads>(sum, Sum(), C(0));
  store_held<V, Items, Threads>(dx + at, threadIdx.x, packs, [&](int slot, int) {
    return gradient<Log>(in[slot], out[slot], sum, scale);
  });
}

constexpr int kColumnWarps = 8;

/// Columns of [outer, n, inner], 32 a block: lanes have a column each, warps every eighth row.
template <typename T, bool Log>
__global__ void __launch_bounds__(32 * kColumnWarps)
    softmax_backward_columns(T* __restrict__ dx, const T* __restrict__ dy, const T* __restrict__ y,
                             long long columns, long long n, long long inner, Compute<T> scale) {
  using C = Compute<T>;
  __shared__ C partial[kColumnWarps][32];
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  const long long step = 32LL * gridDim.x;
  for (long long group = 32LL * blockIdx.x; group < columns; group += step) {
    const long long column = group + lane;
    const bool inside = column < columns;
    const long long base = inside ? column / inner * inner * n + column % inner : 0;
    C sum = 0;
#pragma unroll 4
    for (long long k = warp; inside && k < n; k += kColumnWarps)
      sum += summand<Log>(to_compute(dy[base + k * inner]), to_compute(y[base + k * inner]));
    __syncthreads();  // the group before may still be read
    partial[warp][lane] = sum;
    __syncthreads();
    sum = partial[0][lane];
#pragma unroll
    for (int w = 1; w < kColumnWarps; ++w) sum += partial[w][lane];
#pragma unroll 4
    for (long long k = warp; inside && k < n; k += kColumnWarps) {
      const long long at = base + k * inner;
      dx[at] = from_compute<T>(gradient<Log>(to_compute(dy[at]), to_compute(y[at]), sum, scale));
    }
  }
}
