// Products of one row with weights of one byte: blocks stay, and their x stays in registers.
#include <kernwright/row_norm.cuh>
#include <kernwright/skinny.cuh>
#include <kernwright/skinny_weights.cuh>

using namespace kernwright;

// A block has all of k and takes eight rows of the weights after another. A warp has `Units` parts
// of 512 of k, of which a lane has 16 each. Loads of the next unit's weights overlap the products
// of the current unit.

constexpr unsigned kTileRows = 8, kPart = 512;

/// What 16 bytes of weights hold.
template <typename Float8>
__device__ __forceinline__ void spread_weights(Float8, const Words& raw, float (&values)[16]) {
#pragma unroll
  for (int i = 0; i < 8; ++i) {
    const auto bytes = static_cast<unsigned short>(raw.word[i / 2] >> i % 2 * 16);
    const unsigned pair = round_pair(Float16(), Float8(), bytes);
    values[2 * i] = to_compute(Float16{static_cast<UInt16>(pair)});
    values[2 * i + 1] = to_compute(Float16{static_cast<UInt16>(pair >> 16)});
  }
}
/// 0x4b000000 with a lower byte of v + 128 is 2^23 + 128 + v.
__device__ __forceinline__ void spread_weights(Int8, const Words& raw, float (&values)[16]) {
#pragma unroll
  for (int i = 0; i < 16; ++i) {
    const unsigned moved = raw.word[i / 4] ^ 0x80808080u;
    const unsigned bits = __byte_perm(moved, 0x4b000000u, 0x7540 + i % 4);
    values[i] = __uint_as_float(bits) - 8388736.0f;
  }
}

/// Sums over all lanes of eight numbers each: lane l gets that of number l / 4.
__device__ __forceinline__ float quad_sum(float (&accumulators)[kTileRows], unsigned lane) {
#pragma unroll
  for (int step = kTileRows / 2; step >= 1; step /= 2) {
    const bool upper = lane & (step * 4);
#pragma unroll
    for (int i = 0; i < step; ++i) {
      const float give = upper ? accumulators[i] : accumulators[i + step],
                  keep = upper ? accumulators[i + step] : accumulators[i];
      accumulators[i] = keep + __shfl_xor_sync(~0u, give, step * 4);
    }
  }
  accumulators[0] += __shfl_xor_sync(~0u, accumulators[0], 1);
  return accumulators[0] + __shfl_xor_sync(~0u, accumulators[0], 2);
}

/// With `Gated` half of a tile's rows are of the first half of all rows, the others of the second.
template <bool Gated>
__device__ __forceinline__ unsigned first_row(unsigned tile) {
  return tile * (Gated ? kTileRows / 2 : kTileRows);
}
template <bool Gated>
__device__ __forceinline__ unsigned tile_row(unsigned tile, unsigned r, unsigned n) {
  const unsigned half = Gated && r >= kTileRows / 2 ? n / 2 - kTileRows / 2 : 0;
  return first_row<Gated>(tile) + r + half;
}

/// What a lane has of x and of the weights.
template <typename T, typename W, int Units, bool Gated>
struct RowLane {
  using Raw = Words[kTileRows];
  const W* weights;
  Int64 row;
  unsigned at, n, k;
  unsigned x[Units][8];

  __device__ __forceinline__ RowLane(const SkinnyProblem& p, const WeightRows<W>& matrix,
                                     unsigned warp, unsigned lane)
      : weights(matrix.data),
        row(matrix.row),
        at(warp * Units * kPart + lane * 16),
        n(p.n),
        k(p.k) {}

  /// The weights of unit `u` for eight rows. Rows beyond the last are neither loaded nor stored.
  __device__ __forceinline__ void load(unsigned tile, int u, Raw& raw) const {
    const unsigned from = at + u * kPart, first = tile_row<Gated>(tile, 0, n);
    if (tile * kTileRows >= n || from >= k) return;
    const W* each = weights + static_cast<Int64>(first) * row + from;
#pragma unroll
    for (unsigned r = 0; r < kTileRows; ++r, each += row) {
      if (Gated && r == kTileRows / 2) each += static_cast<Int64>(n / 2 - kTileRows / 2) * row;
      if (Gated || first + r < n) raw[r] = load_once<0>(each);
    }
  }

  /// Zeros beyond the end of k. What a norm weighs is rounded to T.
  template <bool Normed>
  __device__ __forceinline__ void load_x(const SkinnyProblem& p, RowNorm<T, Normed>& norm) {
    unsigned norm_weights[Units][8];
    load_row(p.x, x);
    if constexpr (!Normed) return;
    load_row(p.norm, norm_weights);
#pragma unroll
    for (int i = 0; i < Units * 8; ++i) {
      unsigned& pair = x[i / 8][i % 8];
      const unsigned by = norm_weights[i / 8][i % 8];
      float two[2] = {half_value(pair, 0), half_value(pair, 1)};
      norm.weigh({half_value(by, 0), half_value(by, 1)}, two);
      pair =
          static_cast<unsigned>(from_compute<T>(two[1]).bits) << 16 | from_compute<T>(two[0]).bits;
    }
  }
  __device__ __forceinline__ static float half_value(unsigned pair, int half) {
    return to_compute(T{static_cast<UInt16>(pair >> half * 16)});
  }
  __device__ __forceinline__ void load_row(const void* row_data, unsigned (&to)[Units][8]) const {
#pragma unroll
    for (int i = 0; i < Units * 2; ++i) {
      const unsigned from = at + i / 2 * kPart + i % 2 * 8;
      Words words = {};
      if (from < k) words = *reinterpret_cast<const Words*>(static_cast<const T*>(row_data) + from);
#pragma unroll
      for (int j = 0; j < 4; ++j) to[i / 2][i % 2 * 4 + j] = words.word[j];
    }
  }

  __device__ __forceinline__ void multiply(const Raw& raw, int u,
                                           float (&accumulators)[kTileRows]) const {
    float xs[16];
#pragma unroll
    for (int i = 0; i < 16; ++i) {
      xs[i] = to_compute(T{static_cast<UInt16>(x[u][i / 2] >> i % 2 * 16)});
    }
#pragma unroll
    for (unsigned r = 0; r < kTileRows; ++r) {
      float values[16];
      spread_weights(W(), raw[r], values);
#pragma unroll
      for (int i = 0; i < 16; ++i) accumulators[r] += values[i] * xs[i];
    }
  }
};

/// The first tile's bytes to the second level of cache, but for what is no whole part of a row.
template <bool Gated, typename W>
__device__ __forceinline__ void fetch_tile(const SkinnyProblem& p, const WeightRows<W>& weights) {
  const unsigned parts = p.k / kPart;
  for (unsigned i = threadIdx.x; i < kTileRows * parts; i += blockDim.x) {
    const unsigned row = tile_row<Gated>(blockIdx.x, i / parts, p.n);
    if (row < p.n) {
      const Int64 first = static_cast<Int64>(row) * weights.row;
      fetch_bulk(weights.data + first + i % parts * kPart, kPart);
    }
  }
}

/// One row of x, of at most Warps * Units * 512 elements. It and the rows of the weights begin at
/// multiples of 16 bytes, and k is a multiple of 16.
template <typename T, typename W, typename Act, int Warps, int Units, bool Normed = false,
          bool Gated = false>
__global__ void __launch_bounds__(Warps * 32, 16 / Warps)
    skinny_row(const __grid_constant__ SkinnyProblem p,
               const __grid_constant__ WeightRows<W> weights) {
  // More units would leave a rest of another unit in a buffer where k has ended.
  static_assert(Units == 1 || Units == 2, "each of two buffers has one unit");
  constexpr int kPeriod = Units == 1 ? 2 : 1;  // of tiles, until the buffers repeat
  __shared__ float parts[2][Warps][kTileRows], squares[Warps];
  const unsigned warp = __shfl_sync(~0u, threadIdx.x / 32, 0), lane = threadIdx.x % 32;
  const unsigned tiles = (p.n + kTileRows - 1) / kTileRows;
  pdl_launch_dependents();
  RowNorm<T, Normed> norm;
  if (p.ahead > 0) {
    fetch_tile<Gated>(p, weights);
    norm.fetch(p);
  }
  pdl_launch_then_wait();
  RowLane<T, W, Units, Gated> reader(p, weights, warp, lane);
  Words raw[2][kTileRows] = {};
  reader.load(blockIdx.x, 0, raw[0]);
  if (Normed) __syncwarp();  // else the compiler lets loads wait for the norm
  reader.load_x(p, norm);
  norm.keep(squares);
  unsigned turn = 0;
  float factor = 1;
  for (unsigned first = blockIdx.x; first < tiles; first += kPeriod * gridDim.x) {
#pragma unroll
    for (int t = 0; t < kPeriod; ++t) {
      const unsigned tile = first + t * gridDim.x;
      if (tile >= tiles) break;
      float accumulators[kTileRows] = {};
#pragma unroll
      for (int u = 0; u < Units; ++u) {
        const int now = (t * Units + u) % 2;
        const bool last = u == Units - 1;
        reader.load(last ? tile + gridDim.x : tile, last ? 0 : u + 1, raw[now ^ 1]);
        reader.multiply(raw[now], u, accumulators);
      }
      const float sum = quad_sum(accumulators, lane);
      if (lane % 4 == 0) parts[turn][warp][lane / 4] = sum;
      __syncthreads();
      const unsigned n = first_row<Gated>(tile) + threadIdx.x;
      if (threadIdx.x < (Gated ? kTileRows / 2 : kTileRows) && n < p.n) {
        if (Normed && tile == blockIdx.x) factor = norm.factor(p, squares);
        const auto sum_up = [&](unsigned r) {
          float all = 0;
#pragma unroll
          for (int w = 0; w < Warps; ++w) all += parts[turn][w][r];
          return all * factor;
        };
        const float sum = sum_up(threadIdx.x);
        if constexpr (Gated) {
          finish_gate<T, Act>(p, n, sum, sum_up(threadIdx.x + kTileRows / 2));
        } else {
          finish_sum<T, Act>(p, 0, 0, n, sum);
        }
      }
      turn ^= 1;
    }
  }
}
