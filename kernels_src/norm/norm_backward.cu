// Gradients of the norms, as norm_backward.h states them.
#include <kernwright/async_copy.cuh>
#include <kernwright/elements.cuh>
#include <kernwright/norm_gradient.cuh>
#include <kernwright/norm_rows.cuh>
#include <kernwright/overlap.cuh>
#include <kernwright/reduce.cuh>
#include <kernwright/rows.cuh>

using namespace kernwright;

/// Where a thread accumulates the gradients of weight and bias.
enum Sink { kNowhere, kRegisters, kSharedMemory };

/// Few blocks walk over all rows of up to V * Items * Width elements, Threads / Width at a time,
/// and then write partial sums for weight and (layers) bias: [gridDim.x, n] each. With Adds, the
/// gradient `added` is added to dx. With Columns, which needs kRegisters, partial sums of dx are
/// written to `column_sums`. With kRegisters, a lone block writes the gradients themselves there.
/// `statistics` of the rows are written unless null. Dynamic shared memory for kSharedMemory:
/// V * Items * Threads numbers for each gradient.
template <typename T, typename W, int V, int Items, int Width, int Threads, int Kind, bool Channels,
          int Where, bool Adds, bool Columns>
__global__ void __launch_bounds__(Threads)
    norm_backward_rows(T* __restrict__ dx, const T* __restrict__ dy, const T* __restrict__ x,
                       const T* __restrict__ added, long long rows, int n,
                       const AffineArguments affine, Compute<T> eps,
                       Compute<T>* __restrict__ weight_sums, Compute<T>* __restrict__ bias_sums,
                       Compute<T>* __restrict__ column_sums,
                       RowStatistics<Compute<T>>* __restrict__ statistics) {
  using C = Compute<T>;
  pdl_wait_then_launch_small();
  constexpr int kRows = Threads / Width, kHeld = V * Items;
  // Loads for the next row begin during the work on this one, if there are enough registers.
  constexpr bool kAhead = Threads <= 512 && sizeof(T) * kHeld <= 32;
  extern __shared__ __align__(16) unsigned char memory[];
  C* const kept = reinterpret_cast<C*>(memory) + threadIdx.x;
  C weight_sum[Where == kRegisters ? kHeld : 1], bias_sum[Where == kRegisters ? kHeld : 1];
  C column_sum[Columns ? kHeld : 1] = {};
  if (Where == kRegisters) {
#pragma unroll
    for (int i = 0; i < kHeld; ++i) weight_sum[i] = bias_sum[i] = 0;
  } else if (Where == kSharedMemory) {
    for (int i = 0; i < (Kind == kLayer ? 2 : 1) * kHeld; ++i) kept[i * Threads] = 0;
  }
  const int lane = threadIdx.x % Width, packs = n / V;
  const long long step = static_cast<long long>(gridDim.x) * kRows;
  Pack<T, V> next_x[Items], next_dy[Items];
  const auto load = [&](long long first) {
    const long long row = first + threadIdx.x / Width;
    const int row_packs = row < rows ? packs : 0;
    load_raw<V, Items, Width>(next_x, x + row * n, lane, row_packs);
    load_raw<V, Items, Width>(next_dy, dy + row * n, lane, row_packs);
  };
  const long long begin = static_cast<long long>(blockIdx.x) * kRows;
  if (kAhead) load(begin);
  for (long long first = begin; first < rows; first += step) {
    const long long row = first + threadIdx.x / Width;
    const int row_packs = row < rows ? packs : 0;
    if (!kAhead) load(first);
    Pack<T, V> raw_added[Adds ? Items : 1];
    if constexpr (Adds) load_raw<V, Items, Width>(raw_added, added + row * n, lane, row_packs);
    C value[kHeld], gradient[kHeld];
    for_held<V, Items, Width>(lane, row_packs, [&](int slot, int) {
      value[slot] = computed(next_x[slot / V].value, slot % V);
      gradient[slot] = computed(next_dy[slot / V].value, slot % V);
    });
    if (kAhead) load(first + step);
    const HeldRow<W, V, Items, Width, Channels, C> for_row = {affine, row, lane, row_packs};
    const NormGradient<C> row_is =
        reduce_row<Kind, Width, Threads>(value, gradient, n, eps, for_row);
    for_row([&](int slot, C weight) {
      const C for_weight = gradient[slot] * row_is.normal(value[slot]);
      if (Where == kRegisters) {
        weight_sum[slot] += for_weight;
        if (Kind == kLayer) bias_sum[slot] += gradient[slot];
      } else if (Where == kSharedMemory) {
        kept[slot * Threads] += for_weight;
        if (Kind == kLayer) kept[(kHeld + slot) * Threads] += gradient[slot];
      }
      value[slot] = row_is(value[slot], gradient[slot] * weight);
      if constexpr (Adds) value[slot] += computed(raw_added[slot / V].value, slot % V);
      if constexpr (Columns) column_sum[slot] += value[slot];
    });
    store_held<V, Items, Width>(dx + row * n, lane, row_packs,
                                [&](int slot, int) { return value[slot]; });
    if (statistics != nullptr && lane == 0 && row < rows) statistics[row] = row_is.row_is;
  }
  if constexpr (Where == kRegisters) {
    const auto write = [&](auto* weights, auto* biases, auto* columns) {
      write_partial<V, Items, Width, Threads>(weights, weight_sum, n);
      if (Kind == kLayer) write_partial<V, Items, Width, Threads>(biases, bias_sum, n);
      if constexpr (Columns) write_partial<V, Items, Width, Threads>(columns, column_sum, n);
    };
    const long long first = blockIdx.x * static_cast<long long>(n);
    if (gridDim.x == 1) {
      write(reinterpret_cast<W*>(weight_sums), reinterpret_cast<W*>(bias_sums),
            reinterpret_cast<T*>(column_sums));
    } else {
      write(weight_sums + first, bias_sums + first, column_sums + first);
    }
  } else if constexpr (Where == kSharedMemory) {
    store_held<V, Items, Width>(weight_sums + blockIdx.x * static_cast<long long>(n), lane, packs,
                                [&](int slot, int) { return kept[slot * Threads]; });
    if (Kind == kLayer)
      store_held<V, Items, Width>(bias_sums + blockIdx.x * static_cast<long long>(n), lane, packs,
                                  [&](int slot, int) { return kept[(kHeld + slot) * Threads]; });
  }
}

/// The gradient for rows in packs of 16 bytes, a block a row. The next row is prefetched into
/// shared memory during the work on the current row. Registers hold a row in its stored type, so
/// that several blocks fit a multiprocessor. Registers hold the accumulators too; with
/// kSharedMemory the accumulators of biases are in shared memory, behind the 2 * Items * Threads
/// packs of the next row.
template <typename T, typename W, int V, int Items, int Threads, int Kind, int Where, bool Adds,
          bool Columns>
__global__ void __launch_bounds__(Threads, Threads >= 512 ? 1 : 512 / Threads)
    norm_backward_staged(T* __restrict__ dx, const T* __restrict__ dy, const T* __restrict__ x,
                         const T* __restrict__ added, long long rows, int n,
                         const AffineArguments affine, Compute<T> eps,
                         Compute<T>* __restrict__ weight_sums, Compute<T>* __restrict__ bias_sums,
                         Compute<T>* __restrict__ column_sums) {
  using C = Compute<T>;
  using Raw = Pack<T, V>;
  constexpr int kHeld = V * Items;
  constexpr bool kBiasApart = Kind == kLayer && Where == kSharedMemory;
  constexpr bool kBiasHeld = Kind == kLayer && !kBiasApart;
  constexpr bool kAddedHeld = Adds && kHeld <= 16;  // more would leave too few registers
  pdl_wait_then_launch_small();
  extern __shared__ __align__(16) unsigned char memory[];
  Raw* const staged = reinterpret_cast<Raw*>(memory) + threadIdx.x;
  C* const kept =
      reinterpret_cast<C*>(reinterpret_cast<Raw*>(memory) + 2 * Items * Threads) + threadIdx.x;
  const int lane = threadIdx.x, packs = n / V;
  const auto stage = [&](long long row) {
    if (row < rows) {
#pragma unroll
      for (int i = 0; i < Items; ++i) {
        const int pack = i * Threads + lane;
        if (pack >= packs) continue;
        copy_in_background(staged + 2 * i * Threads,
                           reinterpret_cast<const Raw*>(x + row * n) + pack);
        copy_in_background(staged + (2 * i + 1) * Threads,
                           reinterpret_cast<const Raw*>(dy + row * n) + pack);
      }
    }
    end_copy_group();
  };
  C weight_sum[kHeld] = {}, bias_sum[kBiasHeld ? kHeld : 1] = {};
  C column_sum[Columns ? kHeld : 1] = {};
  if (kBiasApart)
    for (int i = 0; i < kHeld; ++i) kept[i * Threads] = 0;
  stage(blockIdx.x);
  for (long long row = blockIdx.x; row < rows; row += gridDim.x) {
    Raw raw_x[Items], raw_dy[Items], raw_added[kAddedHeld ? Items : 1];
    if constexpr (kAddedHeld) load_raw<V, Items, Threads>(raw_added, added + row * n, lane, packs);
    wait_for_copy_groups<0>();
#pragma unroll
    for (int i = 0; i < Items; ++i) {
      if (i * Threads + lane >= packs) continue;
      raw_x[i] = staged[2 * i * Threads];
      raw_dy[i] = staged[(2 * i + 1) * Threads];
    }
    const HeldRow<W, V, Items, Threads, false, C> for_row = {affine, row, lane, packs};
    const auto value = [&](int slot) { return computed(raw_x[slot / V].value, slot % V); };
    const auto gradient = [&](int slot) { return computed(raw_dy[slot / V].value, slot % V); };
    const Two<C> none = {C(0), C(0)};
    Two<C> plain = none, squared = none;
    if (Kind == kLayer) {
      for_row([&](int slot, C weight) {
        plain.a += value(slot);
        plain.b += gradient(slot) * weight;
      });
      stage(row + gridDim.x);
      plain = block_reduce<Threads, 0>(plain, SumTwo(), none);
    }
    const C mean = plain.a / static_cast<C>(n);
    for_row([&](int slot, C weight) {
      const C off = value(slot) - mean;
      squared.a += off * off;
      squared.b += off * (gradient(slot) * weight);
    });
    if (Kind != kLayer) stage(row + gridDim.x);  // what it writes over has been read
    squared = block_reduce < Threads, Kind == kLayer ? 1 : -1 > (squared, SumTwo(), none);
    const NormGradient<C> row_is =
        finish_norm_gradient<Kind>(mean, squared.a, squared.b, plain.b, n, eps);
    for_row([&](int slot, C weight) {
      const C dy_is = gradient(slot), x_is = value(slot);
      weight_sum[slot] += dy_is * row_is.normal(x_is);
      if (kBiasHeld) bias_sum[kBiasHeld ? slot : 0] += dy_is;
      if (kBiasApart) kept[slot * Threads] += dy_is;
      C result = row_is(x_is, dy_is * weight);
      if constexpr (kAddedHeld) {
        result += computed(raw_added[slot / V].value, slot % V);
      } else if constexpr (Adds) {
        const Raw raw = reinterpret_cast<const Raw*>(added + row * n)[slot / V * Threads + lane];
        result += computed(raw.value, slot % V);
      }
      if constexpr (Columns) column_sum[slot] += result;
      raw_x[slot / V].value[slot % V] = from_compute<T>(result);
    });
#pragma unroll
    for (int i = 0; i < Items; ++i) {
      const int pack = i * Threads + lane;
      if (pack < packs) reinterpret_cast<Raw*>(dx + row * n)[pack] = raw_x[i];
    }
  }
  const long long first = blockIdx.x * static_cast<long long>(n);
  store_held<V, Items, Threads>(weight_sums + first, lane, packs,
                                [&](int slot, int) { return weight_sum[slot]; });
  if (Kind == kLayer)
    store_held<V, Items, Threads>(bias_sums + first, lane, packs, [&](int slot, int) {
      return kBiasHeld ? bias_sum[kBiasHeld ? slot : 0] : kept[slot * Threads];
    });
  if constexpr (Columns)
    store_held<V, Items, Threads>(column_sums + first, lane, packs,
                                  [&](int slot, int) { return column_sum[slot]; });
}

/// The gradient for rows of exactly V * Items * Threads elements. Copies of the next Depth rows to
/// shared memory overlap; each thread copies its packs to places that no other thread reads. Values
/// computed of an element stay in registers.
template <typename T, typename W, int V, int Items, int Threads, int Kind, int Depth, bool Adds>
__global__ void __launch_bounds__(Threads, Threads > 256 ? 1 : 512 / Threads)
    norm_backward_flow(T* __restrict__ dx, const T* __restrict__ dy, const T* __restrict__ x,
                       const T* __restrict__ added, long long rows, int n,
                       const AffineArguments affine, Compute<T> eps,
                       Compute<T>* __restrict__ weight_sums, Compute<T>* __restrict__ bias_sums) {
  using C = Compute<T>;
  using Raw = Pack<T, V>;
  constexpr int kHeld = V * Items, kRow = kHeld * Threads;
  pdl_wait_then_launch_small();
  extern __shared__ __align__(16) unsigned char memory[];
  Raw* const staged = reinterpret_cast<Raw*>(memory) + threadIdx.x;
  const long long begin = static_cast<long long>(blockIdx.x) * kRow;
  const Raw* next_x = reinterpret_cast<const Raw*>(x + begin) + threadIdx.x;
  const Raw* next_dy = reinterpret_cast<const Raw*>(dy + begin) + threadIdx.x;
  Raw* to = reinterpret_cast<Raw*>(dx + begin) + threadIdx.x;
  const Raw* more = Adds ? reinterpret_cast<const Raw*>(added + begin) + threadIdx.x : nullptr;
  const long long step = static_cast<long long>(gridDim.x) * (kRow / V);
  long long left = (rows - blockIdx.x + gridDim.x - 1) / gridDim.x, ahead = left;
  const auto stage = [&](int slot) {
    if (ahead > 0) {
#pragma unroll
      for (int i = 0; i < Items; ++i) {
        copy_in_background(staged + (2 * (slot * Items + i)) * Threads, next_x + i * Threads);
        copy_in_background(staged + (2 * (slot * Items + i) + 1) * Threads, next_dy + i * Threads);
      }
      next_x += step;
      next_dy += step;
      --ahead;
    }
    end_copy_group();
  };
  C weight_sum[kHeld] = {}, bias_sum[Kind == kLayer ? kHeld : 1] = {};
#pragma unroll
  for (int d = 0; d < Depth; ++d) stage(d);
  Pack<W, V> weights[Items];
#pragma unroll
  for (int i = 0; i < Items; ++i) {
    if (affine.weight != nullptr) {
      weights[i] = static_cast<const Pack<W, V>*>(affine.weight)[i * Threads + threadIdx.x];
    } else {
#pragma unroll
      for (int j = 0; j < V; ++j) weights[i].value[j] = from_compute<W>(Compute<W>(1));
    }
  }
  int slot = 0;
#pragma unroll 1
  for (; left > 0; --left) {
    C off[kHeld], dy_is[kHeld], g[kHeld];
    Raw raw_added[Adds ? Items : 1];
    if constexpr (Adds) {
#pragma unroll
      for (int i = 0; i < Items; ++i) raw_added[i] = more[i * Threads];
      more += step;
    }
    wait_for_copy_groups<Depth - 1>();
    const Two<C> none = {C(0), C(0)};
    Two<C> plain = none, squared = none;
#pragma unroll
    for (int i = 0; i < Items; ++i) {
      const Raw raw_x = staged[(2 * (slot * Items + i)) * Threads];
      const Raw raw_dy = staged[(2 * (slot * Items + i) + 1) * Threads];
#pragma unroll
      for (int j = 0; j < V; ++j) {
        const int at = i * V + j;
        off[at] = computed(raw_x.value, j);
        dy_is[at] = computed(raw_dy.value, j);
        g[at] = dy_is[at] * static_cast<C>(computed(weights[i].value, j));
        if (Kind == kLayer) {
          plain.a += off[at];
          plain.b += g[at];
          bias_sum[Kind == kLayer ? at : 0] += dy_is[at];
        }
      }
    }
    stage(slot);
    if (Kind == kLayer) {
      plain = block_reduce<Threads, 0>(plain, SumTwo(), none);
      const C mean = plain.a / static_cast<C>(n);
#pragma unroll
      for (int at = 0; at < kHeld; ++at) off[at] -= mean;
    }
#pragma unroll
    for (int at = 0; at < kHeld; ++at) {
      squared.a += off[at] * off[at];
      squared.b += off[at] * g[at];
    }
    squared = block_reduce < Threads, Kind == kLayer ? 1 : -1 > (squared, SumTwo(), none);
    const NormGradient<C> row_is =
        finish_norm_gradient<Kind>(C(0), squared.a, squared.b, plain.b, n, eps);
    const C factor = row_is.row_is.factor, slope = -factor * row_is.slope;
    const C base = -factor * row_is.mean_g;
#pragma unroll
    for (int i = 0; i < Items; ++i) {
      Raw result;
#pragma unroll
      for (int j = 0; j < V; ++j) {
        const int at = i * V + j;
        const C normal = off[at] * factor;
        weight_sum[at] += dy_is[at] * normal;
        C part = Kind == kLayer ? g[at] * factor + base : g[at] * factor;
        if constexpr (Adds) part += computed(raw_added[i].value, j);
        result.value[j] = from_compute<T>(normal * slope + part);
      }
      to[i * Threads] = result;
    }
    to += step;
    slot = slot + 1 == Depth ? 0 : slot + 1;
  }
  const long long first = blockIdx.x * static_cast<long long>(n);
  store_held<V, Items, Threads>(weight_sums + first, static_cast<int>(threadIdx.x), n / V,
                                [&](int at, int) { return weight_sum[at]; });
  if (Kind == kLayer)
    store_held<V, Items, Threads>(bias_sums + first, static_cast<int>(threadIdx.x), n / V,
                                  [&](int at, int) { return bias_sum[at]; });
}

/// Calls visit(x, g, pack, j) for the elements of a row that this thread reads, in packs; g is dy
/// times the weight.
template <typename T, typename W, int V, int Threads, bool Channels>
struct LongRow {
  const T *x, *dy;
  const AffineArguments& affine;
  long long row;
  int packs;

  template <typename Visit>
  __device__ __forceinline__ void operator()(Visit visit) const {
    using C = Compute<T>;
#pragma unroll 2
    for (int pack = threadIdx.x; pack < packs; pack += Threads) {
      const Pack<T, V> raw_x = reinterpret_cast<const Pack<T, V>*>(x)[pack];
      const Pack<T, V> raw_dy = reinterpret_cast<const Pack<T, V>*>(dy)[pack];
      C weight[V];
      load_affine<Channels, V, W>(weight, affine.weight, affine, row, pack, C(1));
#pragma unroll
      for (int j = 0; j < V; ++j) {
        const C dy_is = computed(raw_dy.value, j);
        visit(computed(raw_x.value, j), dy_is * weight[j], pack, j);
      }
    }
  }
};

/// Rows of any length, a block each, read twice, by layers three times.
template <typename T, typename W, int V, int Threads, int Kind, bool Channels, bool Adds>
__global__ void __launch_bounds__(Threads)
    norm_backward_long(T* __restrict__ dx, const T* __restrict__ dy, const T* __restrict__ x,
                       const T* __restrict__ added, long long rows, int n,
                       const AffineArguments affine, Compute<T> eps,
                       RowStatistics<Compute<T>>* __restrict__ statistics) {
  using C = Compute<T>;
  pdl_wait_then_launch_small();
  const Two<C> none = {C(0), C(0)};
  for (long long row = blockIdx.x; row < rows; row += gridDim.x) {
    const T* const x_row = x + row * n;
    const T* const dy_row = dy + row * n;
    const LongRow<T, W, V, Threads, Channels> for_row = {x_row, dy_row, affine, row, n / V};
    Two<C> plain = none, squared = none;
    if (Kind == kLayer) {
      for_row([&](C value, C g, int, int) {
        plain.a += value;
        plain.b += g;
      });
      plain = block_reduce<Threads, 0>(plain, SumTwo(), none);
    }
    const C mean = plain.a / static_cast<C>(n);
    for_row([&](C value, C g, int, int) {
      squared.a += (value - mean) * (value - mean);
      squared.b += (value - mean) * g;
    });
    squared = block_reduce < Threads, Kind == kLayer ? 1 : -1 > (squared, SumTwo(), none);
    const NormGradient<C> row_is =
        finish_norm_gradient<Kind>(mean, squared.a, squared.b, plain.b, n, eps);
    Pack<T, V> result;
    for_row([&](C value, C g, int pack, int j) {
      C found = row_is(value, g);
      if constexpr (Adds)
        found += computed(reinterpret_cast<const Pack<T, V>*>(added + row * n)[pack].value, j);
      result.value[j] = from_compute<T>(found);
      if (j == V - 1) reinterpret_cast<Pack<T, V>*>(dx + row * n)[pack] = result;
    });
    if (statistics != nullptr && threadIdx.x == 0) statistics[row] = row_is.row_is;
  }
}

constexpr int kColumnWarps = 32;

/// Adds up the values of a block's warps for 32 columns; warp 0 gets the sums.
template <typename C>
__device__ __forceinline__ Two<C> add_warps(Two<C> local) {
  __shared__ Two<C> partial[kColumnWarps][32];
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  partial[warp][lane] = local;
  __syncthreads();
  Two<C> sum = partial[0][lane];
#pragma unroll
  for (int w = 1; w < kColumnWarps; ++w) sum = SumTwo()(sum, partial[w][lane]);
  return sum;
}

/// The partial sums [parts, n] of all blocks added, 32 columns a block. Null targets are left out;
/// those of dx are of the blocks whose blockIdx.y is 1.
template <typename C, typename W, typename T>
__global__ void __launch_bounds__(32 * kColumnWarps)
    norm_add_partial(W* __restrict__ weight, W* __restrict__ bias, T* __restrict__ columns,
                     const C* __restrict__ weight_sums, const C* __restrict__ bias_sums,
                     const C* __restrict__ column_sums, int parts, int n) {
  pdl_wait_then_launch_small();
  const int column = blockIdx.x * 32 + threadIdx.x % 32;
  const bool has_weight = blockIdx.y == 0 && weight != nullptr;
  const bool has_bias = blockIdx.y == 0 && bias != nullptr;
  const C* const first = has_weight ? weight_sums : column_sums;
  Two<C> local = {C(0), C(0)};
#pragma unroll 8
  for (int part = threadIdx.x / 32; column < n && part < parts; part += kColumnWarps) {
    const long long at = static_cast<long long>(part) * n + column;
    if (has_weight || blockIdx.y == 1) local.a += first[at];
    if (has_bias) local.b += bias_sums[at];
  }
  const Two<C> sum = add_warps(local);
  if (threadIdx.x >= 32 || column >= n) return;
  if (has_weight) weight[column] = from_compute<W>(static_cast<Compute<W>>(sum.a));
  if (has_bias) bias[column] = from_compute<W>(static_cast<Compute<W>>(sum.b));
  if (blockIdx.y == 1) columns[column] = from_compute<T>(static_cast<Compute<T>>(sum.a));
}

/// Gradients of weight and bias from the rows' statistics, 32 columns a block.
template <typename T, typename W>
__global__ void __launch_bounds__(32 * kColumnWarps)
    norm_column_sums(W* __restrict__ weight, W* __restrict__ bias, const T* __restrict__ dy,
                     const T* __restrict__ x,
                     const RowStatistics<Compute<T>>* __restrict__ statistics, long long rows,
                     int n) {
  using C = Compute<T>;
  pdl_wait_then_launch_small();
  const int column = blockIdx.x * 32 + threadIdx.x % 32;
  Two<C> local = {C(0), C(0)};
#pragma unroll 4
  for (long long row = threadIdx.x / 32; column < n && row < rows; row += kColumnWarps) {
    const C dy_is = to_compute(dy[row * n + column]);
    const RowStatistics<C> row_is = statistics[row];
    local.a += dy_is * ((to_compute(x[row * n + column]) - row_is.mean) * row_is.factor);
    local.b += dy_is;
  }
  const Two<C> sum = add_warps(local);
  if (threadIdx.x >= 32 || column >= n) return;
  if (weight != nullptr) weight[column] = from_compute<W>(static_cast<Compute<W>>(sum.a));
  if (bias != nullptr) bias[column] = from_compute<W>(static_cast<Compute<W>>(sum.b));
}

/// The gradient for channels of `spatial` elements, a block a channel: [batch, channels, spatial].
/// Row b * groups + g has the statistics of `per_row` channels.
template <typename T, typename W, int Threads>
__global__ void __launch_bounds__(Threads)
    norm_channel_sums(W* __restrict__ weight, W* __restrict__ bias, const T* __restrict__ dy,
                      const T* __restrict__ x,
                      const RowStatistics<Compute<T>>* __restrict__ statistics, long long batch,
                      const AffineArguments affine) {
  using C = Compute<T>;
  pdl_wait_then_launch_small();
  const int channel = blockIdx.x, channels = affine.groups * affine.per_row;
  Two<C> local = {C(0), C(0)};
  for (long long b = 0; b < batch; ++b) {
    const RowStatistics<C> row_is = statistics[b * affine.groups + channel / affine.per_row];
    const long long base = (b * channels + channel) * affine.spatial;
#pragma unroll 4
    for (int i = threadIdx.x; i < affine.spatial; i += Threads) {
      const C dy_is = to_compute(dy[base + i]);
      local.a += dy_is * ((to_compute(x[base + i]) - row_is.mean) * row_is.factor);
      local.b += dy_is;
    }
  }
  local = block_reduce<Threads>(local, SumTwo(), Two<C>{C(0), C(0)});
  if (threadIdx.x != 0) return;
  if (weight != nullptr) weight[channel] = from_compute<W>(static_cast<Compute<W>>(local.a));
  if (bias != nullptr) bias[channel] = from_compute<W>(static_cast<Compute<W>>(local.b));
}
