// Softmax of rows and of columns, as softmax.h states it.
#include <kernwright/async_copy.cuh>
#include <kernwright/elements.cuh>
#include <kernwright/overlap.cuh>
#include <kernwright/reduce.cuh>
#include <kernwright/row_cluster.cuh>
#include <kernwright/rows.cuh>
#include <kernwright/shifted_units.cuh>
#include <kernwright/walk.cuh>

using namespace kernwright;

/// The maximum, by one instruction for floats: the sign of a zero does not matter here.
struct HighestScore : Maximum {
  using Maximum::operator();
#if __CUDA_ARCH__ >= 800
  __device__ __forceinline__ float operator()(float a, float b) const {
    asm("max.NaN.f32 %0, %1, %2;" : "=f"(a) : "f"(a), "f"(b));
    return a;
  }
#endif
};

/// The type of a mask that is not there.
struct NoMask {};
template <typename Mask>
constexpr bool kMasked = true;
template <>
constexpr bool kMasked<NoMask> = false;

template <typename C>
__device__ __forceinline__ C scored(C x, C scale, const NoMask*) {
  return x * scale;
}
template <typename C>
__device__ __forceinline__ C scored(C x, C scale, const Bool* mask) {
  return mask->value != 0 ? x * scale : -infinity<C>();
}
template <typename C, typename Mask>
__device__ __forceinline__ C scored(C x, C scale, const Mask* mask) {
  return x * scale + static_cast<C>(to_compute(*mask));
}

/// The number subtracted from each element before exp(): the maximum, but 0 if all are -inf.
template <typename C>
__device__ __forceinline__ C finite_maximum(C maximum) {
  return maximum == -infinity<C>() ? C(0) : maximum;
}

__device__ __forceinline__ float math_log(float x) { return logf(x); }
__device__ __forceinline__ double math_log(double x) { return log(x); }
__device__ __forceinline__ float product(float a, float b) { return __fmul_rn(a, b); }
__device__ __forceinline__ double product(double a, double b) { return __dmul_rn(a, b); }

/// The maximum of some elements, and the sum of exp(element - finite_maximum(maximum)).
template <typename C>
struct alignas(2 * sizeof(C)) Sums {
  C maximum, sum;
};

struct CombineSums {
  template <typename C>
  __device__ __forceinline__ Sums<C> operator()(Sums<C> a, Sums<C> b) const {
    const C maximum = HighestScore()(a.maximum, b.maximum), shift = finite_maximum(maximum);
    // NOTE: without fused operations, as the lanes of a warp have their operands in either order.
    return {maximum, product(a.sum, math_exp(a.maximum - shift)) +
                         product(b.sum, math_exp(b.maximum - shift))};
  }
};

template <typename C>
__device__ __forceinline__ Sums<C> no_sums() {
  return {-infinity<C>(), C(0)};
}

/// How the elements of a row become results.
template <typename Out, typename C, bool Log, bool Masked>
struct Finish {
  C shift, factor;

  __device__ Finish(C maximum, C sum) {
    const bool nothing = Masked && maximum == -infinity<C>();
    shift = nothing ? C(0) : maximum;
    factor = nothing ? C(0) : Log ? math_log(sum) : C(1) / sum;
  }
  __device__ __forceinline__ C operator()(C x) const {
    return Log ? x - shift - factor : exp_for<Out>(x - shift) * factor;
  }
};

template <typename Mask>
__device__ __forceinline__ const Mask* mask_at(const char* mask, long long element,
                                               long long step) {
  return reinterpret_cast<const Mask*>(mask + element * step);
}

/// Rows of up to V * Items * Width elements, Threads / Width at a time. `view` gives a row's bytes
/// in x (view 0) and in the mask (1); `mask_step` is the stride of the mask's elements. `Whole`: no
/// block has an absent row, and no row an absent element. `Dims`: dimensions of the view, 1 or 8.
template <typename T, typename Out, typename Mask, int V, int Items, int Width, int Threads,
          bool Log, bool Whole, int Dims>
__global__ void __launch_bounds__(Threads, blocks_at_once<Compute<T>>(Threads, V* Items))
    softmax_rows(Out* __restrict__ out, const char* __restrict__ x, const char* __restrict__ mask,
                 const Walk<2, Dims> view, long long rows, int n, long long mask_step,
                 Compute<T> scale) {
  using C = Compute<T>;
  pdl_wait_then_launch_small();
  constexpr int kRows = Threads / Width;
  const int lane = threadIdx.x % Width;
  const long long row = static_cast<long long>(blockIdx.x) * kRows + threadIdx.x / Width;
  const bool is_there = Whole || row < rows;
  const int packs = Whole ? Items * Width : is_there ? n / V : 0;
  const WalkOffsets<2> at = walk_offsets(view, is_there ? row : 0);
  C value[V * Items];
  load_held<V, Items, Width>(value, reinterpret_cast<const T*>(x + at.offset[0]), lane, packs,
                             -infinity<C>());
  C maximum = -infinity<C>();
  for_held<V, Items, Width>(lane, packs, [&](int slot, int element) {
    value[slot] =
        scored(value[slot], scale, mask_at<Mask>(mask + at.offset[1], element, mask_step));
    maximum = HighestScore()(maximum, value[slot]);
  });
  maximum = row_reduce<Width, Threads, 0>(maximum, HighestScore(), -infinity<C>());
  const C shift = kMasked<Mask> ? finite_maximum(maximum) : maximum;
  C sum = 0;
  for_held<V, Items, Width>(lane, packs, [&](int slot, int) {
    const C power = exp_for<Out>(value[slot] - shift);
    if (!Log) value[slot] = power;
    sum += power;
  });
  sum = row_reduce<Width, Threads, 1>(sum, Sum(), C(0));
  const Finish<Out, C, Log, kMasked<Mask>> finish(maximum, sum);
  store_held<V, Items, Width>(out + row * n, lane, packs, [&](int slot, int) {
    return Log ? finish(value[slot]) : value[slot] * finish.factor;
  });
}

/// Calls visit(x * scale) for the elements of `count` packs of a thread in shared memory; what is
/// `left` of the row from the first pack on limits the last pack.
template <int Threads, bool Shifted, typename T, int V, typename C, typename Visit>
__device__ __forceinline__ void for_kept(const Pack<T, V>* held, int count, int left, C scale,
                                         Visit visit) {
  for (int i = 0; i < count; ++i) {
    const Pack<T, V> raw = held[i * Threads];
#pragma unroll
    for (int j = 0; j < V; ++j) {
      const bool inside = !Shifted || i * Threads * V + j < left;
      visit(inside ? computed(raw.value, j) * scale : -infinity<C>());
    }
  }
}

/// Copies up to `kept` of a thread's packs, from number `first` of the row on, to shared memory.
template <int Threads, bool Shifted, typename T, int V>
__device__ __forceinline__ void keep_packs(Pack<T, V>* held, const T* source, int first, int kept,
                                           int packs, int n) {
  const int lane = threadIdx.x;
  if constexpr (Shifted) {
    constexpr int kLoads = 4;
    for (int i = 0; i < kept; i += kLoads) {
      Unit16 units[kLoads];
      load_shifted<kLoads, Threads>(units, source, first + i * Threads, lane, n);
#pragma unroll
      for (int k = 0; k < kLoads; ++k)
        if (i + k < kept) memcpy(held + (i + k) * Threads, units + k, sizeof(Unit16));
    }
  } else {
#pragma unroll 4
    for (int i = 0; i < kept; ++i) {
      const int pack = first + i * Threads + lane;
      if (pack >= packs) break;
      const Pack<T, V>* const from = reinterpret_cast<const Pack<T, V>*>(source) + pack;
      if constexpr (kCopiesInBackground<T, V>) {
        copy_in_background(held + i * Threads, from);
      } else {
        held[i * Threads] = *from;
      }
    }
  }
}

/// The scores of a thread's packs in registers; -inf behind the row.
template <int Threads, bool Shifted, typename T, int V, int Items, typename C>
__device__ __forceinline__ void load_scores(C (&value)[V * Items], const T* source, int n,
                                            C scale) {
  const int lane = threadIdx.x;
  if constexpr (Shifted) {
    Unit16 units[Items];
    load_shifted<Items, Threads>(units, source, 0, lane, n);
    Pack<T, V> raw[Items];
    memcpy(raw, units, sizeof(raw));
#pragma unroll
    for (int i = 0; i < Items; ++i) {
      const int left = n - (i * Threads + lane) * V;
#pragma unroll
      for (int j = 0; j < V; ++j)
        value[i * V + j] = j < left ? computed(raw[i].value, j) * scale : -infinity<C>();
    }
  } else {
    load_held<V, Items, Threads>(value, source, lane, n / V, -infinity<C>());
    for_held<V, Items, Threads>(lane, n / V, [&](int slot, int) { value[slot] *= scale; });
  }
}

/// Stores a pack of results: result(j) for element j.
template <bool Shifted, int V, typename Out, typename Result>
__device__ __forceinline__ void store_results(Out* target, int pack, int n, Result result) {
  Pack<Out, V> raw;
#pragma unroll
  for (int j = 0; j < V; ++j)
    raw.value[j] = from_compute<Out>(static_cast<Compute<Out>>(result(j)));
  if constexpr (Shifted) {
    Unit16 unit;
    memcpy(&unit, &raw, sizeof(unit));
    store_shifted(target, unit, pack, n);
  } else {
    reinterpret_cast<Pack<Out, V>*>(target)[pack] = raw;
  }
}

/// Rows of which the first V * Items * Threads elements are held in registers and `kept` more packs
/// of each thread in shared memory. A block for each row; a multiprocessor takes 1024 threads.
/// `Shifted`: rows of any length at any address, in packs of 16 bytes of x and of the result; else
/// rows are whole packs.
template <typename T, typename Out, int V, int Items, int Threads, bool Log, bool Shifted>
__global__ void __launch_bounds__(Threads, 1024 / Threads)
    softmax_kept(Out* __restrict__ out, const char* __restrict__ x, const Walk<2> view,
                 long long rows, int n, int kept, Compute<T> scale) {
  using C = Compute<T>;
  pdl_wait_then_launch_small();
  extern __shared__ __align__(16) unsigned char memory[];
  Pack<T, V>* const held = reinterpret_cast<Pack<T, V>*>(memory) + threadIdx.x;
  constexpr int kFirst = Items * Threads;
  const int lane = threadIdx.x, packs = Shifted ? (n + V - 1) / V : n / V;
  const int count = min(kept, max(0, (packs - kFirst - lane + Threads - 1) / Threads));
  const int held_packs = Shifted ? Items * Threads : packs, left = n - (kFirst + lane) * V;
  for (long long row = blockIdx.x; row < rows; row += gridDim.x) {
    const T* const source = reinterpret_cast<const T*>(x + walk_offsets(view, row).offset[0]);
    C value[V * Items];
    keep_packs<Threads, Shifted>(held, source, kFirst, kept, packs, n);
    end_copy_group();
    load_scores<Threads, Shifted, T, V, Items>(value, source, n, scale);
    C maximum = -infinity<C>();
    for_held<V, Items, Threads>(
        lane, held_packs, [&](int slot, int) { maximum = HighestScore()(maximum, value[slot]); });
    wait_for_copy_groups<0>();
    for_kept<Threads, Shifted>(held, count, left, scale,
                               [&](C v) { maximum = HighestScore()(maximum, v); });
    maximum = block_reduce<Threads>(maximum, HighestScore(), -infinity<C>());
    C sum = 0;
    for_held<V, Items, Threads>(lane, held_packs, [&](int slot, int) {
      const C power = exp_for<Out>(value[slot] - maximum);
      if (!Log) value[slot] = power;
      sum += power;
    });
    for_kept<Threads, Shifted>(held, count, left, scale,
                               [&](C v) { sum += exp_for<Out>(v - maximum); });
    sum = block_reduce<Threads>(sum, Sum(), C(0));
    const Finish<Out, C, Log, false> finish(maximum, sum);
    Out* const target = out + row * n;
#pragma unroll
    for (int i = 0; i < Items; ++i) {
      const int pack = i * Threads + lane;
      // Whole warps store shifted packs.
      if ((Shifted ? pack - lane % 32 : pack) >= packs) continue;
      store_results<Shifted, V>(target, pack, n, [&](int j) {
        return Log ? finish(value[i * V + j]) : value[i * V + j] * finish.factor;
      });
    }
    for (int i = 0; i < kept; ++i) {
      const int pack = kFirst + i * Threads + lane;
      if ((Shifted ? pack - lane % 32 : pack) >= packs) break;
      const Pack<T, V> raw = held[i * Threads];
      store_results<Shifted, V>(target, pack, n,
                                [&](int j) { return finish(to_compute(raw.value[j]) * scale); });
    }
  }
}

/// Rows that clusters of `blocks` blocks share, each with `part` packs, the last one with the rest.
template <typename T, typename Out, typename Mask, int V, int Items, int Threads, bool Log>
__global__ void __launch_bounds__(Threads, blocks_at_once<Compute<T>>(Threads, V* Items))
    softmax_cluster(Out* __restrict__ out, const char* __restrict__ x,
                    const char* __restrict__ mask, const Walk<2> view, int n, int blocks, int part,
                    long long mask_step, Compute<T> scale) {
  using C = Compute<T>;
  arrive_in_cluster();
  pdl_wait_then_launch_small();
  const RowPart row_part(blocks, part, n / V);
  const int first = row_part.first * V, lane = threadIdx.x;
  const WalkOffsets<2> at = walk_offsets(view, row_part.row);
  C value[V * Items];
  load_held<V, Items, Threads>(value, reinterpret_cast<const T*>(x + at.offset[0]) + first, lane,
                               row_part.packs, -infinity<C>());
  Sums<C> local = no_sums<C>();
  for_held<V, Items, Threads>(lane, row_part.packs, [&](int slot, int element) {
    value[slot] =
        scored(value[slot], scale, mask_at<Mask>(mask + at.offset[1], first + element, mask_step));
    local.maximum = HighestScore()(local.maximum, value[slot]);
  });
  local.maximum = block_reduce<Threads, 0>(local.maximum, HighestScore(), -infinity<C>());
  const C shift = finite_maximum(local.maximum);
  for_held<V, Items, Threads>(lane, row_part.packs, [&](int slot, int) {
    const C power = exp_for<Out>(value[slot] - shift);
    if (!Log) value[slot] = power;
    local.sum += power;
  });
  local.sum = block_reduce<Threads, 1>(local.sum, Sum(), C(0));
  const Sums<C>* const sums = gather_in_cluster(local, blocks);
  Sums<C> all = sums[0];
  for (int c = 1; c < blocks; ++c) all = CombineSums()(all, sums[c]);
  const Finish<Out, C, Log, kMasked<Mask>> finish(all.maximum, all.sum);
  const C factor = finish.factor * math_exp(local.maximum - finite_maximum(all.maximum));
  store_held<V, Items, Threads>(
      out + row_part.row * n + first, lane, row_part.packs,
      [&](int slot, int) { return Log ? finish(value[slot]) : value[slot] * factor; });
}

/// Block c of a row writes the sums of chunk c, V * Items * Threads elements.
template <typename T, typename Mask, int V, int Items, int Threads>
__global__ void __launch_bounds__(Threads)
    softmax_sums(Sums<Compute<T>>* __restrict__ sums, const char* __restrict__ x,
                 const char* __restrict__ mask, const Walk<2> view, long long n, long long chunks,
                 long long mask_step, Compute<T> scale) {
  using C = Compute<T>;
  pdl_wait_then_launch_small();
  constexpr int kChunk = V * Items * Threads;
  const long long row = blockIdx.x / chunks, chunk = blockIdx.x % chunks, first = chunk * kChunk;
  const WalkOffsets<2> at = walk_offsets(view, row);
  const int packs = static_cast<int>((n - first < kChunk ? n - first : kChunk) / V);
  C value[V * Items];
  load_held<V, Items, Threads>(value, reinterpret_cast<const T*>(x + at.offset[0]) + first,
                               threadIdx.x, packs, -infinity<C>());
  Sums<C> local = no_sums<C>();
  for_held<V, Items, Threads>(threadIdx.x, packs, [&](int slot, int element) {
    value[slot] =
        scored(value[slot], scale, mask_at<Mask>(mask + at.offset[1], first + element, mask_step));
    local.maximum = HighestScore()(local.maximum, value[slot]);
  });
  local.maximum = block_reduce<Threads>(local.maximum, HighestScore(), -infinity<C>());
  for_held<V, Items, Threads>(threadIdx.x, packs, [&](int slot, int) {
    local.sum += exp_for<T>(value[slot] - finite_maximum(local.maximum));
  });
  local.sum = block_reduce<Threads>(local.sum, Sum(), C(0));
  if (threadIdx.x == 0) sums[blockIdx.x] = local;
}

/// Block c of a row combines the sums of all chunks and writes the results of chunk c.
template <typename T, typename Out, typename Mask, int V, int Items, int Threads, bool Log>
__global__ void __launch_bounds__(Threads)
    softmax_finish(Out* __restrict__ out, const char* __restrict__ x, const char* __restrict__ mask,
                   const Walk<2> view, long long n, long long chunks, long long mask_step,
                   Compute<T> scale, const Sums<Compute<T>>* __restrict__ sums) {
  using C = Compute<T>;
  pdl_wait_then_launch_small();
  constexpr int kChunk = V * Items * Threads;
  const long long row = blockIdx.x / chunks, chunk = blockIdx.x % chunks, first = chunk * kChunk;
  const WalkOffsets<2> at = walk_offsets(view, row);
  const int packs = static_cast<int>((n - first < kChunk ? n - first : kChunk) / V);
  C value[V * Items];
  load_held<V, Items, Threads>(value, reinterpret_cast<const T*>(x + at.offset[0]) + first,
                               threadIdx.x, packs, -infinity<C>());
  Sums<C> all = no_sums<C>();
  for (long long c = threadIdx.x; c < chunks; c += Threads)
    all = CombineSums()(all, sums[row * chunks + c]);
  all = block_reduce<Threads>(all, CombineSums(), no_sums<C>());
  const Finish<Out, C, Log, kMasked<Mask>> finish(all.maximum, all.sum);
  store_held<V, Items, Threads>(out + row * n + first, threadIdx.x, packs, [&](int slot, int e) {
    return finish(
        scored(value[slot], scale, mask_at<Mask>(mask + at.offset[1], first + e, mask_step)));
  });
}

constexpr int kColumnWarps = 8;

/// Columns of [outer, n, inner], 32 a block: lanes have a column each, warps every eighth row.
template <typename T, typename Out, bool Log>
__global__ void __launch_bounds__(32 * kColumnWarps)
    softmax_columns(Out* __restrict__ out, const T* __restrict__ x, long long columns, long long n,
                    long long inner, Compute<T> scale) {
  using C = Compute<T>;
  pdl_wait_then_launch_small();
  __shared__ Sums<C> partial[kColumnWarps][32];
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  const long long step = 32LL * gridDim.x;
  for (long long group = 32LL * blockIdx.x; group < columns; group += step) {
    const long long column = group + lane;
    const bool inside = column < columns;
    const long long base = inside ? column / inner * inner * n + column % inner : 0;
    Sums<C> local = no_sums<C>();
    constexpr int kBatch = 4;
    for (long long k = warp; inside && k < n; k += kBatch * kColumnWarps) {
      C value[kBatch];
      Sums<C> batch = no_sums<C>();
#pragma unroll
      for (int i = 0; i < kBatch; ++i) {
        const long long at = k + i * kColumnWarps;
        value[i] = at < n ? to_compute(x[base + at * inner]) * scale : -infinity<C>();
        batch.maximum = HighestScore()(batch.maximum, value[i]);
      }
#pragma unroll
      for (int i = 0; i < kBatch; ++i)
        batch.sum += exp_for<Out>(value[i] - finite_maximum(batch.maximum));
      local = CombineSums()(local, batch);
    }
    __syncthreads();  // the group before may still be read
    partial[warp][lane] = local;
    __syncthreads();
    Sums<C> all = partial[0][lane];
#pragma unroll
    for (int w = 1; w < kColumnWarps; ++w) all = CombineSums()(all, partial[w][lane]);
    const Finish<Out, C, Log, false> finish(all.maximum, all.sum);
#pragma unroll 4
    for (long long k = warp; inside && k < n; k += kColumnWarps) {
      const C result = finish(to_compute(x[base + k * inner]) * scale);
      out[base + k * inner] = from_compute<Out>(static_cast<Compute<Out>>(result));
    }
  }
}
