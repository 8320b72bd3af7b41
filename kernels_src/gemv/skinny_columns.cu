// Products with few rows and weights (k, n): neighbours in memory are of different results.
#include <kernwright/skinny.cuh>
#include <kernwright/skinny_weights.cuh>

using namespace kernwright;

// ---- on the tensor cores

// A warp has 64 columns of the weights, 16 k a step. A lane loads 8 columns of four k; pairs along
// k are put together in registers, and of the 64 rows of the product each of four tiles has every
// fourth pair.

constexpr unsigned kWarpColumns = 64;

template <typename T, int ColTiles>
struct ColumnWalk {
  const T* weights;  ///< at the lane's columns
  Int64 weight_row;
  const T* columns[ColTiles];
  unsigned lane_k, k;
  float accumulators[4][ColTiles][4];

  __device__ __forceinline__ void start(const SkinnyProblem& p, const WeightRows<T>& from,
                                        UInt64 batch, unsigned first) {
    const unsigned lane = threadIdx.x % 32, group = lane / 4;
    lane_k = lane % 4 * 4;
    k = p.k;
    weight_row = from.row;
    weights = from.data + static_cast<Int64>(batch) * from.batch + min(first + group * 8, p.n - 8);
    const T* const x = static_cast<const T*>(p.x) + static_cast<Int64>(batch) * p.x_batch;
#pragma unroll
    for (int c = 0; c < ColTiles; ++c) columns[c] = x + min(c * 8 + group, p.m - 1) * p.x_row;
#pragma unroll
    for (int r = 0; r < 4; ++r)
#pragma unroll
      for (int c = 0; c < ColTiles; ++c)
#pragma unroll
        for (int i = 0; i < 4; ++i) accumulators[r][c][i] = 0;
  }

  template <int Unroll, int Hint, bool Whole>
  __device__ __forceinline__ void advance(unsigned from) {
    Words raw[Unroll][4];
#pragma unroll
    for (int u = 0; u < Unroll; ++u)
#pragma unroll
      for (int j = 0; j < 4; ++j) {
        const unsigned at = from + u * 16 + lane_k + j;
        raw[u][j] = {};
        if (Whole || at < k) raw[u][j] = load_once<Hint>(weights + at * weight_row);
      }
    __syncwarp();  // all loads are in flight before the wait for the first of them
#pragma unroll
    for (int u = 0; u < Unroll; ++u) multiply<Whole>(raw[u], from + u * 16 + lane_k);
  }

 private:
  /// k is a multiple of 4.
  template <bool Whole>
  __device__ __forceinline__ void multiply(const Words (&raw)[4], unsigned at) {
    unsigned x[ColTiles][2];
#pragma unroll
    for (int c = 0; c < ColTiles; ++c) {
      Pack<unsigned, 2> pair = {};
      if (Whole || at < k) pair = *reinterpret_cast<const Pack<unsigned, 2>*>(columns[c] + at);
      x[c][0] = pair.value[0];
      x[c][1] = pair.value[1];
    }
#pragma unroll
    for (int r = 0; r < 4; ++r) {
      const unsigned a0 = __byte_perm(raw[0].word[r], raw[1].word[r], 0x5410);
      const unsigned a1 = __byte_perm(raw[0].word[r], raw[1].word[r], 0x7632);
      const unsigned a2 = __byte_perm(raw[2].word[r], raw[3].word[r], 0x5410);
      const unsigned a3 = __byte_perm(raw[2].word[r], raw[3].word[r], 0x7632);
#pragma unroll
      for (int c = 0; c < ColTiles; ++c) {
        multiply_tile(T(), accumulators[r][c], a0, a1, a2, a3, x[c][0], x[c][1]);
      }
    }
  }
};

/// The places of a lane's pairs of weights.
struct LanePairs {
  __device__ __forceinline__ static int row(int r, int i) {
    return static_cast<int>(threadIdx.x) % 32 / 4 * 8 + r * 2 + i / 2;
  }
};

/// Rows of the weights begin at multiples of 16 bytes and n is a multiple of 8; rows of x at
/// multiples of 8 bytes and k is a multiple of 4.
template <typename T, typename Act, int Warps, int ColTiles, int Unroll, int Hint>
__global__ void __launch_bounds__(Warps * 32)
    skinny_column_tiles(SkinnyProblem p, WeightRows<T> weights) {
  constexpr unsigned kGroup = Unroll * 16;
  const unsigned first = blockIdx.x * kWarpColumns, warp = threadIdx.x / 32;
  const unsigned groups = (p.k + kGroup - 1) / kGroup, whole = p.k / kGroup;
  const unsigned each = (groups + p.splits - 1) / p.splits;
  const unsigned begin = blockIdx.y * each, end = min(begin + each, groups);
  ColumnWalk<T, ColTiles> walk;
  walk.start(p, weights, blockIdx.z, first);
  for (unsigned i = 0; i < p.ahead; ++i) {
    const unsigned at = (begin + warp + i / Unroll * Warps) * kGroup + i % Unroll * 16;
    for (unsigned j = at + walk.lane_k; j < min(at + walk.lane_k + 4, p.k); ++j) {
      fetch_ahead(walk.weights + j * weights.row);
    }
  }
  pdl_launch_then_wait();
  for (UInt64 batch = blockIdx.z; batch < p.batches; batch += gridDim.z) {
    walk.start(p, weights, batch, first);
    unsigned group = begin + warp;
#pragma unroll 1
    for (; group < min(end, whole); group += Warps) {
      walk.template advance<Unroll, Hint, true>(group * kGroup);
    }
    if (group < end) walk.template advance<Unroll, Hint, false>(group * kGroup);
    add_warps<T, Act, Warps, LanePairs>(p, batch, first, walk.accumulators);
  }
}

// ---- on the other cores

/// A thread has `Width` columns of the weights, and `Columns` rows of x; the warps of a block share
/// k. n is a multiple of `Width`, and all rows begin where packs of that many elements may.
template <typename T, typename W, typename Act, int Width, int Columns, int Unroll, int Warps>
__global__ void __launch_bounds__(Warps * 32)
    skinny_columns(SkinnyProblem p, WeightRows<W> weights) {
  const unsigned tiles = (p.m + Columns - 1) / Columns, lane = threadIdx.x % 32;
  const unsigned n = (blockIdx.x / tiles * 32 + lane) * Width;
  const unsigned first = blockIdx.x % tiles * Columns, warp = threadIdx.x / 32;
  const unsigned each = (p.k + p.splits - 1) / p.splits;
  const unsigned begin = min(blockIdx.y * each, p.k), end = min(begin + each, p.k);
  __shared__ float shared[Warps][32 * Width];
  pdl_launch_then_wait();
  for (UInt64 batch = blockIdx.z; batch < p.batches; batch += gridDim.z) {
    const W* const w = weights.data + static_cast<Int64>(batch) * weights.batch;
    const T* const x = static_cast<const T*>(p.x) + static_cast<Int64>(batch) * p.x_batch;
    const T* columns[Columns];
#pragma unroll
    for (int c = 0; c < Columns; ++c) columns[c] = x + min(first + c, p.m - 1) * p.x_row;
    float accumulators[Columns][Width] = {};
    for (unsigned from = begin + warp; from < end && n < p.n; from += Unroll * Warps) {
      Pack<W, Width> raw[Unroll];
#pragma unroll
      for (int u = 0; u < Unroll; ++u) {
        const unsigned at = from + u * Warps;
        if (at < end) raw[u] = load_weights<W, Width, 0>(w + at * weights.row + n);
      }
#pragma unroll
      for (int u = 0; u < Unroll; ++u) {
        const unsigned at = from + u * Warps;
        if (at >= end) break;
#pragma unroll
        for (int c = 0; c < Columns; ++c) {
          const float value = to_compute(columns[c][at]);
#pragma unroll
          for (int i = 0; i < Width; ++i)
            accumulators[c][i] += to_float_value(raw[u].value[i]) * value;
        }
      }
    }
#pragma unroll
    for (int c = 0; c < Columns; ++c) {
#pragma unroll
      for (int i = 0; i < Width; ++i) shared[warp][lane * Width + i] = accumulators[c][i];
      __syncthreads();
      for (int i = threadIdx.x; i < 32 * Width; i += Warps * 32) {
        float sum = 0;
#pragma unroll
        for (int other = 0; other < Warps; ++other) sum += shared[other][i];
        const unsigned m = first + c, at = blockIdx.x / tiles * 32 * Width + i;
        if (m < p.m && at < p.n) store_sum<T, Act>(p, batch, m, at, sum);
      }
      __syncthreads();
    }
  }
}
