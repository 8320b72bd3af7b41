// Products with few rows: the weights pass the memory once, straight into registers.
#include <kernwright/reduce.cuh>
#include <kernwright/row_norm.cuh>
#include <kernwright/shifted_units.cuh>
#include <kernwright/skinny.cuh>
#include <kernwright/skinny_weights.cuh>

using namespace kernwright;

// ---- on the tensor cores

// The weights are the fragment of 16 rows, x the fragment of 8 columns. The order of k is free: a
// lane loads 16 bytes of either operand, and uses them as parts of two fragments, without shared
// memory. The warps of a block share k.

constexpr int kEarlyValues = 64;  ///< of x, of a lane, that are loaded beside the weights

template <typename T, typename Weights, int RowTiles, int ColTiles>
struct TileWalk {
  static constexpr int kValues = Weights::kValues;
  static constexpr unsigned kStep = 4 * kValues;  ///< along k, of the four lanes of a row
  typename Weights::Row rows[RowTiles][2];
  const T* columns[ColTiles];
  unsigned lane_k, k;
  float accumulators[RowTiles][ColTiles][4];

  /// Rows and columns beyond the last read the last: their accumulators are not stored.
  __device__ __forceinline__ void start(const SkinnyProblem& p, const Weights& weights,
                                        UInt64 batch, unsigned first_row) {
    const unsigned lane = threadIdx.x % 32, group = lane / 4;
    lane_k = lane % 4 * kValues;
    k = p.k;
#pragma unroll
    for (int r = 0; r < 2 * RowTiles; ++r) {
      rows[r / 2][r % 2] = weights.row(batch, min(first_row + r * 8 + group, p.n - 1));
    }
    const T* const x = static_cast<const T*>(p.x) + static_cast<Int64>(batch) * p.x_batch;
#pragma unroll
    for (int c = 0; c < ColTiles; ++c) columns[c] = x + min(c * 8 + group, p.m - 1) * p.x_row;
#pragma unroll
    for (int r = 0; r < RowTiles; ++r)
#pragma unroll
      for (int c = 0; c < ColTiles; ++c)
#pragma unroll
        for (int i = 0; i < 4; ++i) accumulators[r][c][i] = 0;
  }

  __device__ __forceinline__ void fetch(unsigned from) const {
    const unsigned at = from + lane_k;
    if (at >= k) return;
#pragma unroll
    for (int r = 0; r < 2 * RowTiles; ++r) Weights::fetch(rows[r / 2][r % 2], at);
  }

  /// `Unroll` steps from `from` on; all inside k if `Whole`.
  template <int Unroll, int Hint, bool Whole>
  __device__ __forceinline__ void advance(unsigned from) {
    typename Weights::Raw raw[Unroll][RowTiles][2];
#pragma unroll
    for (int u = 0; u < Unroll; ++u) {
      const unsigned at = from + u * kStep + lane_k;
#pragma unroll
      for (int r = 0; r < 2 * RowTiles; ++r) {
        raw[u][r / 2][r % 2] = Weights::none();
        if (Whole || at < k) {
          raw[u][r / 2][r % 2] = Weights::template load<Hint>(rows[r / 2][r % 2], at);
        }
      }
    }
    // All loads are in flight before the wait for the first of them: x too, if it is not too much.
    constexpr bool kEarly = Unroll * ColTiles * kValues <= kEarlyValues;
    unsigned x[kEarly ? Unroll : 1][ColTiles][kValues / 2];
#pragma unroll
    for (int u = 0; kEarly && u < Unroll; ++u) load_x<Whole>(from + u * kStep + lane_k, x[u]);
    __syncwarp();
#pragma unroll
    for (int u = 0; u < Unroll; ++u) {
      if (!kEarly) load_x<Whole>(from + u * kStep + lane_k, x[0]);
      multiply(raw[u], x[kEarly ? u : 0]);
    }
  }

  /// A lane's elements of x at k `at`.
  template <bool Whole>
  __device__ __forceinline__ void load_x(unsigned at, unsigned (&x)[ColTiles][kValues / 2]) const {
#pragma unroll
    for (int c = 0; c < ColTiles; ++c)
#pragma unroll
      for (int i = 0; i < kValues / 8; ++i) {
        Words w = {};
        if (Whole || at < k) w = *reinterpret_cast<const Words*>(columns[c] + at + 8 * i);
#pragma unroll
        for (int j = 0; j < 4; ++j) x[c][4 * i + j] = w.word[j];
      }
  }

  __device__ __forceinline__ void multiply(const typename Weights::Raw (&raw)[RowTiles][2],
                                           const unsigned (&x)[ColTiles][kValues / 2]) {
#pragma unroll
    for (int r = 0; r < RowTiles; ++r) {
      unsigned upper[kValues / 2], lower[kValues / 2];
      Weights::decode(raw[r][0], upper);
      Weights::decode(raw[r][1], lower);
#pragma unroll
      for (int j = 0; j < kValues / 2; j += 2)
#pragma unroll
        for (int c = 0; c < ColTiles; ++c) {
          multiply_tile(T(), accumulators[r][c], upper[j], lower[j], upper[j + 1], lower[j + 1],
                        x[c][j], x[c][j + 1]);
        }
    }
  }
};

/// A block has 16 * RowTiles rows of the weights and all rows of x, at most 8 * ColTiles. Weights
/// and x begin at multiples of 16 bytes, and k is a multiple of the values of a load.
template <typename T, typename Weights, typename Act, int Warps, int RowTiles, int ColTiles,
          int Unroll, int Hint>
__global__ void __launch_bounds__(Warps * 32) skinny_tiles(SkinnyProblem p, Weights weights) {
  using Walk = TileWalk<T, Weights, RowTiles, ColTiles>;
  constexpr unsigned kGroup = Unroll * Walk::kStep;
  const unsigned first_row = blockIdx.x * (16 * RowTiles), warp = threadIdx.x / 32;
  const unsigned groups = (p.k + kGroup - 1) / kGroup, whole = p.k / kGroup;
  const unsigned each = (groups + p.splits - 1) / p.splits;
  const unsigned begin = blockIdx.y * each, end = min(begin + each, groups);
  Walk walk;
  walk.start(p, weights, blockIdx.z, first_row);
  for (unsigned i = 0; i < p.ahead; ++i) {
    const unsigned group = begin + warp + i / Unroll * Warps;
    if (group < end) walk.fetch(group * kGroup + i % Unroll * Walk::kStep);
  }
  pdl_launch_then_wait();
  for (UInt64 batch = blockIdx.z; batch < p.batches; batch += gridDim.z) {
    walk.start(p, weights, batch, first_row);
    unsigned group = begin + warp;
#pragma unroll 1
    for (; group < min(end, whole); group += Warps) {
      walk.template advance<Unroll, Hint, true>(group * kGroup);
    }
    if (group < end) walk.template advance<Unroll, Hint, false>(group * kGroup);
    add_warps<T, Act, Warps>(p, batch, first_row, walk.accumulators);
  }
}

// ---- on the other cores

/// Adds the products with packs of the weights' rows at `at` to the accumulators.
template <int Width, int Columns, int Rows, typename T, typename W, bool Normed>
__device__ __forceinline__ void add_products(const SkinnyProblem& p,
                                             const Pack<W, Width> (&raw)[Rows],
                                             const T* const (&columns)[Columns], UInt64 at,
                                             float (&accumulators)[Rows][Columns],
                                             RowNorm<T, Normed>& norm) {
  constexpr int kPart = Width * sizeof(T) > 16 ? 16 / sizeof(T) : Width;
  float values[Rows][Width];
#pragma unroll
  for (int r = 0; r < Rows; ++r)
#pragma unroll
    for (int i = 0; i < Width; ++i) values[r][i] = to_float_value(raw[r].value[i]);
#pragma unroll
  for (int c = 0; c < Columns; ++c)
#pragma unroll
    for (int part = 0; part < Width; part += kPart) {
      const auto pack = *reinterpret_cast<const Pack<T, kPart>*>(columns[c] + at + part);
      float x[kPart];
#pragma unroll
      for (int i = 0; i < kPart; ++i) x[i] = to_compute(pack.value[i]);
      norm.weigh(p, at + part, x);
#pragma unroll
      for (int i = 0; i < kPart; ++i)
#pragma unroll
        for (int r = 0; r < Rows; ++r) accumulators[r][c] += values[r][part + i] * x[i];
    }
}

/// Row `r` of a block's rows of the weights, of which `first` is the first one. With `Gated` they
/// are as many rows of the first half as of the second. Rows beyond the last are the last.
template <int Rows, bool Gated>
__device__ __forceinline__ unsigned dot_row(const SkinnyProblem& p, unsigned first, int r) {
  if (!Gated) return min(first + r, p.n - 1);
  constexpr int kHalf = Rows < 2 ? 1 : Rows / 2;
  return min(first / 2 + r % kHalf, p.n / 2 - 1) + (r < kHalf ? 0 : p.n / 2);
}

/// Adds the accumulators of a block's threads: lanes first, then warps in their order.
template <typename T, typename Act, int Warps, bool Gated = false, int Columns, int Rows,
          bool Normed = false>
__device__ __forceinline__ void add_dot_threads(const SkinnyProblem& p, UInt64 batch,
                                                unsigned column, unsigned first,
                                                const float (&accumulators)[Rows][Columns],
                                                const RowNorm<T, Normed>& norm = {}) {
  __shared__ float shared[Warps][Rows * Columns], squares[Warps];
  norm.keep(squares);
#pragma unroll
  for (int r = 0; r < Rows; ++r)
#pragma unroll
    for (int c = 0; c < Columns; ++c) {
      const float sum = warp_reduce(accumulators[r][c], Sum());
      if (threadIdx.x % 32 == 0) shared[threadIdx.x / 32][c * Rows + r] = sum;
    }
  __syncthreads();
  for (int i = threadIdx.x; i < Rows * Columns; i += Warps * 32) {
    float sum = 0;
#pragma unroll
    for (int warp = 0; warp < Warps; ++warp) sum += shared[warp][i];
    sum *= norm.factor(p, squares);
    if constexpr (Gated) {  // the first lanes of one warp
      const float up = __shfl_down_sync((1u << Rows) - 1, sum, Rows / 2);
      const unsigned n = first / 2 + i;
      if (i < Rows / 2 && n < p.n / 2) finish_gate<T, Act>(p, n, sum, up);
      continue;
    }
    const unsigned m = column + i / Rows, n = first + i % Rows;
    if (m < p.m && n < p.n) store_sum<T, Act>(p, batch, m, n, sum);
  }
  __syncthreads();
}

/// A block has `Rows` rows of the weights and `Columns` rows of x; its threads share k. k is a
/// multiple of `Width`, and all rows begin at packs of `Width` elements. `Normed`: of one row, k of
/// which no other block has a part. `Gated`: the second half of the results, times Act of the
/// first.
template <typename T, typename W, typename Act, int Width, int Columns, int Rows, int Unroll,
          int Warps, int Hint, bool Normed = false, bool Gated = false>
__global__ void __launch_bounds__(Warps * 32) skinny_dot(SkinnyProblem p, WeightRows<W> weights) {
  constexpr unsigned kStep = Warps * 32 * Width;
  const unsigned tiles = (p.m + Columns - 1) / Columns;
  const unsigned first = blockIdx.x / tiles * Rows, column = blockIdx.x % tiles * Columns;
  const unsigned steps = (p.k + kStep - 1) / kStep, each = (steps + p.splits - 1) / p.splits;
  const unsigned begin = blockIdx.y * each * kStep;
  const unsigned end = min(static_cast<UInt64>(p.k), static_cast<UInt64>(begin) + each * kStep);
  for (unsigned i = 0; i < p.ahead; ++i) {
    const UInt64 at = begin + threadIdx.x * Width + static_cast<UInt64>(i) * kStep;
    for (int r = 0; r < Rows && at < end; ++r) {
      fetch_ahead(weights.data + static_cast<Int64>(blockIdx.z) * weights.batch +
                  dot_row<Rows, Gated>(p, first, r) * weights.row + at);
    }
  }
  RowNorm<T, Normed> norm;
  if (p.ahead > 0) norm.fetch(p);
  pdl_launch_then_wait();
  for (UInt64 batch = blockIdx.z; batch < p.batches; batch += gridDim.z) {
    const W* rows[Rows];
    const T* columns[Columns];
    const W* const w = weights.data + static_cast<Int64>(batch) * weights.batch;
    const T* const x = static_cast<const T*>(p.x) + static_cast<Int64>(batch) * p.x_batch;
#pragma unroll
    for (int r = 0; r < Rows; ++r) rows[r] = w + dot_row<Rows, Gated>(p, first, r) * weights.row;
#pragma unroll
    for (int c = 0; c < Columns; ++c) columns[c] = x + min(column + c, p.m - 1) * p.x_row;
    float accumulators[Rows][Columns] = {};
    const unsigned behind = Normed ? threadIdx.x % 32 * Width : 0;  // warps stay together
    for (UInt64 from = begin + threadIdx.x * Width; from - behind < end; from += Unroll * kStep) {
      Pack<W, Width> raw[Unroll][Rows];
#pragma unroll
      for (int u = 0; u < Unroll; ++u)
#pragma unroll
        for (int r = 0; r < Rows; ++r) {
          const UInt64 at = from + u * kStep;
          if (at < end) raw[u][r] = load_weights<W, Width, Hint>(rows[r] + at);
        }
      if (Normed) __syncwarp();  // else the compiler lets loads wait for the norm of others
#pragma unroll
      for (int u = 0; u < Unroll; ++u) {
        const UInt64 at = from + u * kStep;
        if (at >= end) break;
        add_products<Width>(p, raw[u], columns, at, accumulators, norm);
      }
    }
    add_dot_threads<T, Act, Warps, Gated>(p, batch, column, first, accumulators, norm);
  }
}

/// Rows from any addresses: threads extract packs of 16 bytes from the two aligned packs around
/// them. The first pack of a row, and the rest behind the last but one, are read element by
/// element: aligned packs there may leave the row. k has two packs or more.
template <typename T, typename Act, int Columns, int Rows, int Warps>
__global__ void __launch_bounds__(Warps * 32)
    skinny_shifted(SkinnyProblem p, WeightRows<T> weights) {
  constexpr unsigned kWidth = 16 / sizeof(T), kStep = Warps * 32 * kWidth;
  const unsigned tiles = (p.m + Columns - 1) / Columns;
  const unsigned first = blockIdx.x / tiles * Rows, column = blockIdx.x % tiles * Columns;
  const unsigned last = (p.k / kWidth - 1) * kWidth;  // where the last pack begins
  const unsigned steps = (last - kWidth + kStep - 1) / kStep;
  const unsigned each = (steps + p.splits - 1) / p.splits;
  const UInt64 begin = kWidth + static_cast<UInt64>(blockIdx.y) * each * kStep;
  const UInt64 end = min(static_cast<UInt64>(last), begin + static_cast<UInt64>(each) * kStep);
  for (UInt64 batch = blockIdx.z; batch < p.batches; batch += gridDim.z) {
    const T* rows[Rows];
    const T* columns[Columns];
    const T* const w = weights.data + static_cast<Int64>(batch) * weights.batch;
    const T* const x = static_cast<const T*>(p.x) + static_cast<Int64>(batch) * p.x_batch;
#pragma unroll
    for (int r = 0; r < Rows; ++r) rows[r] = w + min(first + r, p.n - 1) * weights.row;
#pragma unroll
    for (int c = 0; c < Columns; ++c) columns[c] = x + min(column + c, p.m - 1) * p.x_row;
    float accumulators[Rows][Columns] = {};
    for (UInt64 at = begin + threadIdx.x * kWidth; at < end; at += kStep) {
      Pack<T, kWidth> raw[Rows];
#pragma unroll
      for (int r = 0; r < Rows; ++r)
        raw[r] = load_unaligned<T, kWidth>(reinterpret_cast<const char*>(rows[r] + at));
#pragma unroll
      for (int c = 0; c < Columns; ++c) {
        const Pack<T, kWidth> xs =
            load_unaligned<T, kWidth>(reinterpret_cast<const char*>(columns[c] + at));
#pragma unroll
        for (int i = 0; i < static_cast<int>(kWidth); ++i) {
          const float value = to_compute(xs.value[i]);
#pragma unroll
          for (int r = 0; r < Rows; ++r) accumulators[r][c] += to_compute(raw[r].value[i]) * value;
        }
      }
    }
    const unsigned ends = blockIdx.y == 0 ? kWidth + p.k - last : 0;
    for (unsigned i = threadIdx.x; i < ends; i += Warps * 32) {
      const unsigned at = i < kWidth ? i : last + i - kWidth;
#pragma unroll
      for (int c = 0; c < Columns; ++c) {
        const float value = to_compute(columns[c][at]);
#pragma unroll
        for (int r = 0; r < Rows; ++r) accumulators[r][c] += to_compute(rows[r][at]) * value;
      }
    }
    add_dot_threads<T, Act, Warps>(p, batch, column, first, accumulators);
  }
}

// ---- the parts of k that blocks had, in their order

template <typename T, typename Act>
__global__ void __launch_bounds__(256) add_splits(SkinnyProblem p) {
  add_parts<T, Act>(p);
}
