// Products of one row with quantised weights: what a lane has of a unit of two blocks, 256 of k.
#pragma once

#include <kernwright/packed_weights.cuh>
#include <kernwright/skinny.cuh>

namespace kernwright {

// Each of the eight columns of a fragment takes the x of 32 values of a unit, so a lane has the
// accumulators of two columns, and multiplies them with the columns' scales when the unit is done.

/// The place of block `u` of a unit, for half the rows of a tile.
__device__ __forceinline__ PackedPlace place_in_unit(const PackedPlace& first, unsigned u,
                                                     unsigned half) {
  return {first.block + u, first.pair, first.at + u, first.tile, first.line, half};
}

/// The factors of a lane's accumulators: for rows lane / 4 and 8 more, two columns each.
template <typename Format>
struct LaneScales {
  float scale[4];

  /// Blocks behind the weights count nothing.
  __device__ __forceinline__ void load(const PackedArrays& from, const PackedPlace& first,
                                       unsigned lane, unsigned blocks) {
    unsigned u = lane % 4 / 2;
    const bool there = first.at + u < blocks;
    if (!there) u = 0;
#pragma unroll
    for (unsigned half = 0; half < 2; ++half) {
      const auto made = Format::Scales::load(from, place_in_unit(first, u, half)).ready();
#pragma unroll
      for (unsigned i = 0; i < 2; ++i) {
        const float value = made.scale_at((lane % 2 * 2 + i) * 32 / Format::kGroup);
        scale[half * 2 + i] = there ? value : 0.0f;
      }
    }
  }
};

/// A lane's own x of a unit, of column lane / 4.
template <typename T, typename Format>
struct LaneColumn {
  static constexpr int kRun = Format::kRun;
  unsigned x[4];

  __device__ __forceinline__ void load(const SkinnyProblem& p, unsigned unit, unsigned lane) {
    load(p.x, p.k, unit, lane);
  }
  __device__ __forceinline__ void load(const void* from, unsigned k, unsigned unit, unsigned lane) {
#pragma unroll
    for (int i = 0; i < 8 / kRun; ++i) {
      const unsigned at = unit * 256 + lane / 4 * 32 + i * 16 + lane % 4 * kRun;
      Pack<UInt32, kRun / 2> pack = {};
      if (at < k)
        pack = *reinterpret_cast<const Pack<UInt32, kRun / 2>*>(static_cast<const T*>(from) + at);
#pragma unroll
      for (int j = 0; j < kRun / 2; ++j) x[i * (kRun / 2) + j] = pack.value[j];
    }
  }
};

/// What a lane has of a unit of weights whose codes have a table, in shared memory.
template <typename T, typename Format>
struct LaneUnit {
  static_assert(TakesPairTable<typename Format::Codes>::kValue && Format::kGroup >= 32);
  static_assert(!Format::kOffset);
  using Codes = typename Format::Codes;
  typename Codes::Raw raw[2][2];
  LaneScales<Format> scales;

  /// `first` is the place of the unit's first block.
  __device__ __forceinline__ void load(const PackedArrays& from, const PackedPlace& first,
                                       unsigned lane, unsigned blocks) {
#pragma unroll
    for (unsigned u = 0; u < 2; ++u)
#pragma unroll
      for (unsigned half = 0; half < 2; ++half) {
        raw[u][half] = {};
        const PackedPlace place = place_in_unit(first, u, half);
        if (place.at < blocks) raw[u][half] = Codes::template load<true>(from, place, lane);
      }
    scales.load(from, first, lane, blocks);
  }

  /// Adds the products with x to the accumulators of two rows. Each part of 32 has separate
  /// accumulators, of which one column counts.
  __device__ __forceinline__ void multiply(const LaneColumn<T, Format>& column, unsigned lane,
                                           const PairTable& table, float (&rows)[2]) const {
    float accumulators[4];
#pragma unroll
    for (int pair = 0; pair < 4; ++pair) {
      float both[2][4] = {};
#pragma unroll
      for (int i = 0; i < 2; ++i) {
        unsigned upper[4], lower[4];
        const int part = pair * 2 + i;
        table.decode(raw[part / 4][0].low.word[part % 4], upper);
        table.decode(raw[part / 4][1].low.word[part % 4], lower);
#pragma unroll
        for (int h = 0; h < 2; ++h) {
          multiply_tile(T(), both[i], upper[2 * h], lower[2 * h], upper[2 * h + 1],
                        lower[2 * h + 1], column.x[2 * h], column.x[2 * h + 1]);
        }
      }
#pragma unroll
      for (int i = 0; i < 4; ++i)
        accumulators[i] =
            pair == 0 || lane % 4 == static_cast<unsigned>(pair) ? both[i % 2][i] : accumulators[i];
    }
#pragma unroll
    for (int i = 0; i < 4; ++i) rows[i / 2] += scales.scale[i] * accumulators[i];
  }
};

/// All lanes of a warp call it: adds accumulators of two rows a lane to accumulators of 16 rows.
__device__ __forceinline__ void keep_rows(float (&rows)[2], unsigned lane, float* warp_rows) {
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    rows[half] += __shfl_xor_sync(~0u, rows[half], 1);
    rows[half] += __shfl_xor_sync(~0u, rows[half], 2);
    if (lane % 4 == 0) warp_rows[half * 8 + lane / 4] = rows[half];
  }
}

}  // namespace kernwright
