// Norms of rows, as norm.h states them.
#include <kernwright/elements.cuh>
#include <kernwright/norm_rows.cuh>
#include <kernwright/overlap.cuh>
#include <kernwright/reduce.cuh>
#include <kernwright/row_cluster.cuh>
#include <kernwright/rows.cuh>
#include <kernwright/walk.cuh>

using namespace kernwright;

/// The largest value that a quantised row takes; 0: the row is not quantised.
template <typename T>
constexpr float kLargest = 0;
template <>
constexpr float kLargest<Int8> = 127;
template <>
constexpr float kLargest<Float8E4M3> = 448;
template <typename T>
constexpr bool kQuantized = kLargest<T> != 0;

template <typename Out>
__device__ __forceinline__ Out quantized(float x) {
  return from_compute<Out>(x);
}
template <>
__device__ __forceinline__ Int8 quantized<Int8>(float x) {
  return static_cast<Int8>(__float2int_rn(fminf(fmaxf(x, -127.0f), 127.0f)));
}
/// A scale that is subnormal has few digits, so that a quotient by it may be far beyond the limit.
template <>
__device__ __forceinline__ Float8E4M3 quantized<Float8E4M3>(float x) {
  constexpr float kLimit = kLargest<Float8E4M3>;
  return from_compute<Float8E4M3>(x > kLimit ? kLimit : x < -kLimit ? -kLimit : x);
}

template <typename Out, int V>
__device__ __forceinline__ void store_pack(Out* row, int pack, const Out (&values)[V]) {
  Pack<Out, V> raw;
#pragma unroll
  for (int j = 0; j < V; ++j) raw.value[j] = values[j];
  reinterpret_cast<Pack<Out, V>*>(row)[pack] = raw;
}

/// Loads a row, adds the residual's, rounds the sum to T and stores it.
template <typename T, int V, int Items, int Width, bool Residual>
__device__ __forceinline__ void load_input(Compute<T> (&value)[V * Items], const T* x,
                                           const T* residual, T* sum_out, int lane, int packs) {
  constexpr bool kPredicated = V == 1 && kManyPacks<Items, Width>;
  load_held<V, Items, Width, kPredicated>(value, x, lane, packs, Compute<T>(0));
  if constexpr (Residual) {
    Compute<T> other[V * Items];
    load_held<V, Items, Width, kPredicated>(other, residual, lane, packs, Compute<T>(0));
#pragma unroll
    for (int i = 0; i < V * Items; ++i) value[i] = to_compute(from_compute<T>(value[i] + other[i]));
    store_held<V, Items, Width>(sum_out, lane, packs, [&](int slot, int) { return value[slot]; });
  }
}

/// The sum of term(x) over what a thread holds: one for each place of a pack, so that additions
/// need not wait for each other, then of these.
template <int V, int Items, int Width, typename C, typename Term>
__device__ __forceinline__ C sum_held(const C (&value)[V * Items], int lane, int packs, Term term) {
  C sum[V] = {};
  for_held<V, Items, Width>(lane, packs,
                            [&](int slot, int) { sum[slot % V] += term(value[slot]); });
#pragma unroll
  for (int step = 1; step < V; step *= 2) {
#pragma unroll
    for (int j = 0; j < V; j += 2 * step) sum[j] += sum[j + step];
  }
  return sum[0];
}

/// The mean (0 but for layers) and the sum of (x - mean)^2 of what the threads of a row hold. A
/// kernel calls it once.
template <int Kind, int V, int Items, int Width, int Threads, typename C>
__device__ __forceinline__ Two<C> held_moments(const C (&value)[V * Items], int lane, int packs,
                                               int n) {
  C mean = 0;
  if (Kind == kLayer) {
    const C sum = sum_held<V, Items, Width>(value, lane, packs, [](C x) { return x; });
    mean = row_reduce<Width, Threads, 0>(sum, Sum(), C(0)) / static_cast<C>(n);
  }
  const C squares =
      sum_held<V, Items, Width>(value, lane, packs, [&](C x) { return (x - mean) * (x - mean); });
  return {mean, row_reduce<Width, Threads, 1>(squares, Sum(), C(0))};
}

/// Stores the results of what is held, normalised and scaled. Threads with many packs load weights
/// and biases of several packs at once.
template <typename Out, int Held, typename W, int V, int Items, int Width, bool Channels,
          typename C>
__device__ __forceinline__ void store_normal(
    Out* out, const C (&value)[V * Items], RowStatistics<C> row_is, const AffineArguments& affine,
    const HeldAffine<Held, Channels, W, V, Items, Width>& held, long long row, int lane, int packs,
    int first_pack) {
  const auto store = [&](int i, const C* weight, const C* bias) {
    Out result[V];
#pragma unroll
    for (int j = 0; j < V; ++j) {
      const C normal = (value[i * V + j] - row_is.mean) * row_is.factor;
      result[j] = from_compute<Out>(static_cast<Compute<Out>>(normal * weight[j] + bias[j]));
    }
    store_pack(out, i * Width + lane, result);
  };
  constexpr int kBatch =
      Held == kNotHeld && !Channels && V == 1 && kManyPacks<Items, Width> ? 4 : 1;
#pragma unroll
  for (int first = 0; first < Items; first += kBatch) {
    C weight[kBatch * V], bias[kBatch * V];
    if constexpr (kBatch > 1) {
      const int at = first_pack + first * Width, left = packs - first * Width;
      load_affine_packs<V, kBatch, Width, W>(weight, affine.weight, at, lane, left, C(1));
      load_affine_packs<V, kBatch, Width, W>(bias, affine.bias, at, lane, left, C(0));
    }
#pragma unroll
    for (int b = 0; b < kBatch && first + b < Items; ++b) {
      const int pack = (first + b) * Width + lane;
      if (pack >= packs) continue;
      if constexpr (kBatch == 1) held.get(weight, bias, affine, row, first, first_pack + pack);
      store(first + b, weight + b * V, bias + b * V);
    }
  }
}

/// Writes the results as integers or 8-bit floats with one scale for the row.
template <typename Out, typename W, int V, int Items, int Width, int Threads, typename C>
__device__ __forceinline__ void store_quantized(Out* out, float* scale_out, C (&value)[V * Items],
                                                RowStatistics<C> row_is,
                                                const AffineArguments& affine, int lane,
                                                int packs) {
  float largest = 0;
#pragma unroll
  for (int i = 0; i < Items; ++i) {
    const int pack = i * Width + lane;
    if (pack >= packs) continue;
    C weight[V], bias[V];
    load_affine<false, V, W>(weight, affine.weight, affine, 0, pack, C(1));
    load_affine<false, V, W>(bias, affine.bias, affine, 0, pack, C(0));
#pragma unroll
    for (int j = 0; j < V; ++j) {
      C& y = value[i * V + j];
      y = (y - row_is.mean) * row_is.factor * weight[j] + bias[j];
      largest = Maximum()(largest, fabsf(static_cast<float>(y)));
    }
  }
  largest = row_reduce<Width, Threads, 2>(largest, Maximum(), 0.0f);
  const float scale = largest / kLargest<Out>;
  if (lane == 0 && packs > 0) *scale_out = scale;
#pragma unroll
  for (int i = 0; i < Items; ++i) {
    const int pack = i * Width + lane;
    if (pack >= packs) continue;
    Out result[V];
#pragma unroll
    for (int j = 0; j < V; ++j) {
      const float y = static_cast<float>(value[i * V + j]);
      result[j] = quantized<Out>(scale == 0 ? 0.0f : y / scale);
    }
    store_pack(out, pack, result);
  }
}

/// Rows of up to V * Items * Width elements, Threads / Width at a time. `view` gives a row's bytes
/// in x (view 0) and in the residual (1). `scales` has one scale a row where Out is Int8 or
/// Float8E4M3. `Held`: see HeldAffine. `Whole`: no block has an absent row, and no row an absent
/// element. `Dims`: dimensions of the view, 1 or 8.
template <typename T, typename W, typename Out, int V, int Items, int Width, int Threads, int Kind,
          bool Channels, bool Residual, int Held, bool Whole, int Dims>
__global__ void __launch_bounds__(Threads, Held != kNotHeld
                                               ? 1
                                               : blocks_at_once<Compute<T>>(Threads, V* Items))
    norm_rows(Out* __restrict__ out, const char* __restrict__ x, const char* __restrict__ residual,
              const Walk<2, Dims> view, long long rows, int n, const AffineArguments affine,
              Compute<T> eps, T* __restrict__ sum_out, float* __restrict__ scales) {
  using C = Compute<T>;
  pdl_wait_then_launch();
  constexpr int kRows = Threads / Width;
  const int lane = threadIdx.x % Width;
  const long long row = static_cast<long long>(blockIdx.x) * kRows + threadIdx.x / Width;
  const bool is_there = Whole || row < rows;
  const int packs = Whole ? Items * Width : is_there ? n / V : 0;
  const WalkOffsets<2> at = walk_offsets(view, is_there ? row : 0);
  // Before x, whose conversion waits for it.
  const HeldAffine<Held, Channels, W, V, Items, Width> held(affine, lane, packs, 0);
  C value[V * Items];
  load_input<T, V, Items, Width, Residual>(value, reinterpret_cast<const T*>(x + at.offset[0]),
                                           reinterpret_cast<const T*>(residual + at.offset[1]),
                                           sum_out + row * n, lane, packs);
  const int count = Whole ? V * Items * Width : n;
  const Two<C> moments = held_moments<Kind, V, Items, Width, Threads>(value, lane, packs, count);
  const RowStatistics<C> row_is = finish_statistics<Kind>(moments.a, moments.b, count, eps);
  if constexpr (kQuantized<Out>) {
    store_quantized<Out, W, V, Items, Width, Threads>(out + row * n, scales + row, value, row_is,
                                                      affine, lane, packs);
  } else {
    store_normal<Out, Held, W, V, Items, Width, Channels>(out + row * n, value, row_is, affine,
                                                          held, row, lane, packs, 0);
  }
}

/// The moments of a whole row from the moments of its parts: `size(c)` elements have the moments
/// `of(c)`.
template <int Kind, typename C, typename Size, typename PartMoments>
__device__ __forceinline__ Two<C> combine_moments(int parts, long long n, Size size,
                                                  PartMoments part_moments) {
  C mean = 0, squares = 0;
  if (Kind == kLayer) {
    for (int c = 0; c < parts; ++c) mean += size(c) * part_moments(c).a;
    mean /= static_cast<C>(n);
  }
  for (int c = 0; c < parts; ++c) {
    const C off = Kind == kLayer ? part_moments(c).a - mean : C(0);
    squares += part_moments(c).b + size(c) * off * off;
  }
  return {mean, squares};
}

/// Rows that clusters of `blocks` blocks share, each with `part` packs, the last one with the rest.
template <typename T, typename W, typename Out, int V, int Items, int Threads, int Kind,
          bool Channels, bool Residual>
__global__ void __launch_bounds__(Threads, blocks_at_once<Compute<T>>(Threads, V* Items))
    norm_cluster(Out* __restrict__ out, const char* __restrict__ x,
                 const char* __restrict__ residual, const Walk<2> view, int n, int blocks, int part,
                 const AffineArguments affine, Compute<T> eps, T* __restrict__ sum_out) {
  using C = Compute<T>;
  arrive_in_cluster();
  pdl_wait_then_launch();
  const RowPart local(blocks, part, n / V);
  const int first = local.first * V, lane = threadIdx.x;
  const WalkOffsets<2> at = walk_offsets(view, local.row);
  C value[V * Items];
  load_input<T, V, Items, Threads, Residual>(
      value, reinterpret_cast<const T*>(x + at.offset[0]) + first,
      reinterpret_cast<const T*>(residual + at.offset[1]) + first, sum_out + local.row * n + first,
      lane, local.packs);
  const Two<C>* const moments = gather_in_cluster(
      held_moments<Kind, V, Items, Threads, Threads>(value, lane, local.packs, local.packs * V),
      blocks);
  const Two<C> all = combine_moments<Kind, C>(
      blocks, n, [&](int c) { return static_cast<C>(min(part * V, n - c * part * V)); },
      [&](int c) { return moments[c]; });
  const RowStatistics<C> row_is = finish_statistics<Kind>(all.a, all.b, n, eps);
  const HeldAffine<kNotHeld, Channels, W, V, Items, Threads> held(affine, lane, local.packs,
                                                                  local.first);
  store_normal<Out, kNotHeld, W, V, Items, Threads, Channels>(out + local.row * n + first, value,
                                                              row_is, affine, held, local.row, lane,
                                                              local.packs, local.first);
}

/// Block c of a row writes the moments of chunk c, V * Items * Threads elements, and the sums with
/// the residual.
template <typename T, int V, int Items, int Threads, int Kind, bool Residual>
__global__ void __launch_bounds__(Threads)
    norm_moments(Two<Compute<T>>* __restrict__ moments, const char* __restrict__ x,
                 const char* __restrict__ residual, const Walk<2> view, long long n,
                 long long chunks, T* __restrict__ sum_out) {
  using C = Compute<T>;
  constexpr int kChunk = V * Items * Threads;
  pdl_wait_then_launch();
  const long long row = blockIdx.x / chunks, first = blockIdx.x % chunks * kChunk;
  const WalkOffsets<2> at = walk_offsets(view, row);
  const int count = static_cast<int>(n - first < kChunk ? n - first : kChunk), packs = count / V;
  C value[V * Items];
  load_input<T, V, Items, Threads, Residual>(
      value, reinterpret_cast<const T*>(x + at.offset[0]) + first,
      reinterpret_cast<const T*>(residual + at.offset[1]) + first, sum_out + row * n + first,
      threadIdx.x, packs);
  const Two<C> local =
      held_moments<Kind, V, Items, Threads, Threads>(value, threadIdx.x, packs, count);
  if (threadIdx.x == 0) moments[blockIdx.x] = local;
}

/// The moments of a whole row from the moments of its chunks.
template <int Kind, int Threads, typename C>
__device__ __forceinline__ Two<C> combined(const Two<C>* moments, long long chunks, int chunk,
                                           long long n) {
  const auto size = [&](long long c) {
    return static_cast<C>(n - c * chunk < chunk ? n - c * chunk : chunk);
  };
  C mean = 0, squares = 0;
  if (Kind == kLayer) {
    for (long long c = threadIdx.x; c < chunks; c += Threads) mean += size(c) * moments[c].a;
    mean = block_reduce<Threads>(mean, Sum(), C(0)) / static_cast<C>(n);
  }
  for (long long c = threadIdx.x; c < chunks; c += Threads) {
    const C off = Kind == kLayer ? moments[c].a - mean : C(0);
    squares += moments[c].b + size(c) * off * off;
  }
  return {mean, block_reduce<Threads>(squares, Sum(), C(0))};
}

/// Block c of a row combines the moments of all chunks and writes the results of chunk c.
template <typename T, typename W, typename Out, int V, int Items, int Threads, int Kind,
          bool Channels, int Held>
__global__ void __launch_bounds__(Threads)
    norm_finish(Out* __restrict__ out, const char* __restrict__ x, const Walk<2> view, long long n,
                long long chunks, const AffineArguments affine, Compute<T> eps,
                const Two<Compute<T>>* __restrict__ moments) {
  using C = Compute<T>;
  constexpr int kChunk = V * Items * Threads;
  pdl_wait_then_launch();
  const long long row = blockIdx.x / chunks, first = blockIdx.x % chunks * kChunk;
  const T* const source = reinterpret_cast<const T*>(x + walk_offsets(view, row).offset[0]) + first;
  const int packs = static_cast<int>((n - first < kChunk ? n - first : kChunk) / V);
  C value[V * Items];
  load_held<V, Items, Threads>(value, source, threadIdx.x, packs, C(0));
  const int first_pack = static_cast<int>(first / V);
  const HeldAffine<Held, Channels, W, V, Items, Threads> held(affine, threadIdx.x, packs,
                                                              first_pack);
  const Two<C> all = combined<Kind, Threads>(moments + row * chunks, chunks, kChunk, n);
  const RowStatistics<C> row_is = finish_statistics<Kind>(all.a, all.b, n, eps);
  store_normal<Out, Held, W, V, Items, Threads, Channels>(
      out + row * n + first, value, row_is, affine, held, row, threadIdx.x, packs, first_pack);
}
