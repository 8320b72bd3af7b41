// A warp's way along the rows of packed weights: products of tiles, whose accumulators of
// groups are multiplied with their scales.
#pragma once

#include <kernwright/packed_weights.cuh>
#include <kernwright/skinny.cuh>

namespace kernwright {

// The weights are the fragment of 16 rows, x is the fragment of 8 columns, and the warps of a block
// share k, like in skinny.cu.

template <typename T, typename Format, int RowTiles, int ColTiles>
struct PackedWalk {
  UInt64 tile_block[RowTiles];  ///< the first block of each tile of rows
  UInt64 tile_pair[RowTiles];   ///< for pairs of blocks
  UInt32 tile[RowTiles];
  const T* columns[ColTiles];
  unsigned lane, k;
  float accumulators[RowTiles][ColTiles][4];

  /// Tiles and columns beyond the last read the last: their accumulators are not stored.
  __device__ __forceinline__ void start(const SkinnyProblem& p, const PackedArrays& weights) {
    lane = threadIdx.x % 32;
    k = p.k;
#pragma unroll
    for (int r = 0; r < RowTiles; ++r) {
      tile[r] = min(blockIdx.x * RowTiles + r, (p.n - 1) / 16);
      tile_block[r] = static_cast<UInt64>(tile[r]) * weights.blocks;
      tile_pair[r] = tile_block[r] / 2;
    }
#pragma unroll
    for (int c = 0; c < ColTiles; ++c) {
      columns[c] = static_cast<const T*>(p.x) + min(c * 8 + lane / 4, p.m - 1) * p.x_row +
                   lane % 4 * Format::kRun;
    }
#pragma unroll
    for (int r = 0; r < RowTiles; ++r)
#pragma unroll
      for (int c = 0; c < ColTiles; ++c)
#pragma unroll
        for (int i = 0; i < 4; ++i) accumulators[r][c][i] = 0;
  }

  __device__ __forceinline__ Format load(const PackedArrays& weights, int r, unsigned half,
                                         UInt64 block) const {
    const PackedPlace place = {tile_block[r] + block,
                               tile_pair[r] + block / 2,
                               static_cast<UInt32>(block),
                               tile[r],
                               lane / 4,
                               half};
    return Format::load(weights, place, lane);
  }

  /// `Unroll` blocks from `first` on; all inside k if `Whole`.
  template <int Unroll, bool Whole>
  __device__ __forceinline__ void advance(const PackedArrays& weights, UInt64 first) {
    Format raw[Unroll][RowTiles][2];
#pragma unroll
    for (int u = 0; u < Unroll; ++u)
#pragma unroll
      for (int r = 0; r < RowTiles; ++r)
#pragma unroll
        for (int half = 0; half < 2; ++half) raw[u][r][half] = load(weights, r, half, first + u);
    __syncwarp();  // all loads are on their way before the first of them is waited for
#pragma unroll
    for (int u = 0; u < Unroll; ++u) multiply_block<Whole>((first + u) * 128, raw[u]);
  }

  template <bool Whole>
  __device__ __forceinline__ void multiply_block(UInt64 from, const Format (&raw)[RowTiles][2]) {
    typename Format::Scales::Ready scales[RowTiles][2];
#pragma unroll
    for (int r = 0; r < 2 * RowTiles; ++r) scales[r / 2][r % 2] = raw[r / 2][r % 2].scales.ready();
    float parts[RowTiles][ColTiles][4], x_sums[ColTiles][4];
#pragma unroll
    for (int part = 0; part < 4; ++part) {
      unsigned upper[RowTiles][4], lower[RowTiles][4], x[ColTiles][4];
#pragma unroll
      for (int r = 0; r < RowTiles; ++r) {
        raw[r][0].decode(part, upper[r]);
        raw[r][1].decode(part, lower[r]);
      }
#pragma unroll
      for (int c = 0; c < ColTiles; ++c) load_x<Whole>(c, from + part * 32, x[c]);
#pragma unroll
      for (int h = 0; h < 2; ++h) {
        const int at = part * 32 + h * 16;
        if (at % Format::kGroup == 0) clear(parts, x_sums);
#pragma unroll
        for (int c = 0; c < ColTiles; ++c) {
#pragma unroll
          for (int r = 0; r < RowTiles; ++r) {
            multiply_tile(T(), parts[r][c], upper[r][2 * h], lower[r][2 * h], upper[r][2 * h + 1],
                          lower[r][2 * h + 1], x[c][2 * h], x[c][2 * h + 1]);
          }
          constexpr unsigned kOne = PairBits<T>::kOne;
          if constexpr (Format::kOffset)
            multiply_tile(T(), x_sums[c], kOne, kOne, kOne, kOne, x[c][2 * h], x[c][2 * h + 1]);
        }
        if ((at + 16) % Format::kGroup == 0) add_group(at / Format::kGroup, scales, parts, x_sums);
      }
    }
  }

 private:
  __device__ __forceinline__ static void clear(float (&parts)[RowTiles][ColTiles][4],
                                               float (&x_sums)[ColTiles][4]) {
#pragma unroll
    for (int c = 0; c < ColTiles; ++c)
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        x_sums[c][i] = 0;
#pragma unroll
        for (int r = 0; r < RowTiles; ++r) parts[r][c][i] = 0;
      }
  }

  /// A lane's elements of column tile `c` in 32 of k, zeros beyond the end.
  template <bool Whole>
  __device__ __forceinline__ void load_x(int c, UInt64 from, unsigned (&x)[4]) const {
    constexpr int kRun = Format::kRun;
#pragma unroll
    for (int i = 0; i < 8 / kRun; ++i) {
      Pack<UInt32, kRun / 2> pack = {};
      if (Whole || from + i * 16 + lane % 4 * kRun < k) {
        pack = *reinterpret_cast<const Pack<UInt32, kRun / 2>*>(columns[c] + from + i * 16);
      }
#pragma unroll
      for (int j = 0; j < kRun / 2; ++j) x[i * (kRun / 2) + j] = pack.value[j];
    }
  }

  __device__ __forceinline__ void add_group(
      int group, const typename Format::Scales::Ready (&scales)[RowTiles][2],
      const float (&parts)[RowTiles][ColTiles][4], const float (&x_sums)[ColTiles][4]) {
#pragma unroll
    for (int r = 0; r < RowTiles; ++r)
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        const float scale = scales[r][half].scale_at(group);
#pragma unroll
        for (int c = 0; c < ColTiles; ++c)
#pragma unroll
          for (int i = 2 * half; i < 2 * half + 2; ++i)
            accumulators[r][c][i] += scale * parts[r][c][i];
        if constexpr (Format::kOffset) {
          const float offset = Format::offset(scales[r][half], group, scale);
#pragma unroll
          for (int c = 0; c < ColTiles; ++c)
#pragma unroll
            for (int i = 2 * half; i < 2 * half + 2; ++i) {
              accumulators[r][c][i] -= offset * x_sums[c][i % 2];
            }
        }
      }
  }
};

/// A stage: some blocks of a tile, from the first of a pair on.
template <typename Format, unsigned Blocks = 2>
struct PackedStage {
  using Codes = typename Format::Codes;
  using Scales = typename Format::Scales;
  static constexpr unsigned kBlocks = Blocks;
  static constexpr unsigned kHigh = kBlocks * Codes::kBytes;
  static constexpr unsigned kScales = kHigh + kBlocks * Codes::kHighBytes;
  static constexpr unsigned kMore =
      kScales + (Scales::kPairedScales ? kBlocks / 2 : kBlocks) * Scales::kScaleBytes;
  static constexpr unsigned kBytes =
      kMore + (Scales::kPairedMore ? kBlocks / 2 : kBlocks) * Scales::kMoreBytes;

  /// action(place in the stage, address, bytes) of each array: of `some` blocks from `block` on,
  /// which is the first of `pair` where arrays have pairs.
  template <typename Action>
  __device__ __forceinline__ static void each(const PackedArrays& from, UInt64 block, UInt64 pair,
                                              unsigned some, const Action& action) {
    action(0u, from.codes + block * Codes::kBytes, some * Codes::kBytes);
    if constexpr (Codes::kHighBytes > 0)
      action(kHigh, from.high + block * Codes::kHighBytes, some * Codes::kHighBytes);
    if constexpr (Scales::kScaleBytes > 0)
      action(kScales, from.scales + (Scales::kPairedScales ? pair : block) * Scales::kScaleBytes,
             (Scales::kPairedScales ? (some + 1) / 2 : some) * Scales::kScaleBytes);
    if constexpr (Scales::kMoreBytes > 0)
      action(kMore, from.more + (Scales::kPairedMore ? pair : block) * Scales::kMoreBytes,
             (Scales::kPairedMore ? (some + 1) / 2 : some) * Scales::kMoreBytes);
  }
  /// The arrays of the blocks whose stage is `here`, in shared memory.
  __device__ __forceinline__ static PackedArrays copied(const PackedArrays& weights,
                                                        const unsigned char* here) {
    PackedArrays made = weights;
    made.codes = here;
    made.high = here + kHigh;
    if constexpr (Scales::kScaleBytes > 0) made.scales = here + kScales;
    made.more = here + kMore;
    return made;
  }
};

/// Bytes of the table that a format's scales come from; 0 if none does.
template <typename Scales, bool kFar = Scales::kFar>
struct ScalesTable {
  static constexpr unsigned kBytes = 0;
  struct Early {};
};
template <typename Scales>
struct ScalesTable<Scales, true> {
  static constexpr unsigned kBytes = Scales::kTableBytes;
  using Early = typename Scales::Early;
};

/// The scales of a warp's next block, of formats whose scales are no part of a stage.
template <typename Format>
struct ScalesAhead {
  using Scales = typename Format::Scales;
  static constexpr bool kAhead = Scales::kFar;
  static constexpr bool kTable = ScalesTable<Scales>::kBytes > 0;
  typename ScalesTable<Scales>::Early next[2];
  const float* table;  ///< a copy in shared memory
  float offset;

  __device__ __forceinline__ void start(const PackedArrays& weights, const float* copied) {
    table = copied;
    offset = kTable ? *weights.factor : 0.0f;
  }
  __device__ __forceinline__ void load(const PackedArrays& weights, unsigned tile, unsigned at) {
    if constexpr (kAhead) {
      const unsigned block = min(at, weights.blocks - 1), line = threadIdx.x % 32 / 4;
      const UInt64 first = static_cast<UInt64>(tile) * weights.blocks + block;
#pragma unroll
      for (unsigned half = 0; half < 2; ++half)
        next[half] = Scales::early(weights, {first, first / 2, block, tile, line, half});
    }
  }
  /// A row's part of the block, from copies.
  __device__ __forceinline__ Format format(const PackedArrays& copied, const PackedPlace& place,
                                           unsigned lane) const {
    if constexpr (kAhead) {
      return {Format::Codes::template load<true>(copied, place, lane),
              Scales::late(next[place.half], copied, place, table, offset)};
    } else {
      return Format::template load<true>(copied, place, lane);
    }
  }
};

}  // namespace kernwright
