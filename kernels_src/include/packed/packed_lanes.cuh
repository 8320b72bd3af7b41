// Products of one row with quantised weights: what a lane has of a unit of two blocks, 256 of k.
#pragma once

#include <kernwright/packed_weights.cuh>
#include <kernwright/skinny.cuh>

namespace kernwright {

// Each of the eight columns of a fragment takes the x of 32 values of a unit, so a lane has the
// accumulators of two columns, and multiplies them with the columns' scales when the unit is done.
// Groups of 16 have separate accumulators: for the first and the second half of all columns.

/// The place of block `u` of a unit, for half the rows of a tile.
__device__ __forceinline__ PackedPlace place_in_unit(const PackedPlace& first, unsigned u,
                                                     unsigned half) {
  return {first.block + u, first.pair, first.at + u, first.tile, first.line, half};
}

/// The factors of a lane's accumulators: for rows lane / 4 and 8 more, two columns each.
template <typename Format>
struct LaneScales {
  static constexpr int kSums = Format::kGroup == 16 ? 2 : 1;
  float scale[kSums][4], offset[kSums][4];

  /// Blocks behind the weights count nothing.
  __device__ __forceinline__ void load(const PackedArrays& from, const PackedPlace& first,
                                       unsigned lane, unsigned blocks) {
    unsigned u = lane % 4 / 2;
    const bool there = first.at + u < blocks;
    if (!there) u = 0;
#pragma unroll
    for (unsigned half = 0; half < 2; ++half) {
      const auto raw = Format::Scales::load(from, place_in_unit(first, u, half));
      const auto made = raw.ready();
#pragma unroll
      for (unsigned i = 0; i < 2 * kSums; ++i) {
        const unsigned group = ((lane % 2 * 2 + i % 2) * 32 + i / 2 * 16) / Format::kGroup;
        const unsigned to = half * 2 + i % 2;
        const float value = made.scale_at(group);
        scale[i / 2][to] = there ? value : 0.0f;
        if constexpr (Format::kOffset)
          offset[i / 2][to] = there ? Format::offset(made, group, value) : 0.0f;
      }
    }
  }
};

/// A lane's own x of a unit, of column lane / 4; and the sums of columns lane % 4 * 2 and the next.
template <typename T, typename Format>
struct LaneColumn {
  static constexpr int kSums = LaneScales<Format>::kSums, kRun = Format::kRun;
  unsigned x[4];
  float sums[kSums][2];

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
  __device__ __forceinline__ void add() {
    constexpr unsigned kOne = PairBits<T>::kOne;
    float all[kSums][4] = {};
    multiply_tile(T(), all[0], kOne, kOne, kOne, kOne, x[0], x[1]);
    multiply_tile(T(), all[kSums - 1], kOne, kOne, kOne, kOne, x[2], x[3]);
#pragma unroll
    for (int i = 0; i < 2 * kSums; ++i) sums[i / 2][i % 2] = all[i / 2][i % 2];
  }
};

/// What a lane has of a unit of weights.
template <typename T, typename Format>
struct LaneUnit {
  using Codes = typename Format::Codes;
  using Column = LaneColumn<T, Format>;
  static constexpr int kSums = Column::kSums;
  typename Codes::Raw raw[2][2];
  LaneScales<Format> scales;

  /// `first` is the place of the unit's first block. `Copied`: it is in shared memory.
  template <bool Copied>
  __device__ __forceinline__ void load(const PackedArrays& from, const PackedPlace& first,
                                       unsigned lane, unsigned blocks) {
#pragma unroll
    for (unsigned u = 0; u < 2; ++u)
#pragma unroll
      for (unsigned half = 0; half < 2; ++half) {
        raw[u][half] = {};
        const PackedPlace place = place_in_unit(first, u, half);
        if (place.at < blocks) raw[u][half] = Codes::template load<Copied>(from, place, lane);
      }
    scales.load(from, first, lane, blocks);
  }

  __device__ __forceinline__ void decode(int u, int half, int part, unsigned mask,
                                         const PairTable& table, unsigned (&pairs)[4]) const {
    if constexpr (TakesPairTable<Codes>::kValue) {
      table.decode(raw[u][half].low.word[part], pairs);
    } else if constexpr (CodeMask<Codes>::kValue != 0) {
      Codes::decode_masked(raw[u][half], part, mask, pairs);
    } else {
      Codes::decode(raw[u][half], part, pairs);
    }
  }

  /// Adds the products with x to the accumulators of two rows.
  __device__ __forceinline__ void multiply(const Column& column, unsigned lane, unsigned mask,
                                           const PairTable& table, float (&rows)[2]) const {
    float sums[kSums][4];
    if constexpr (kSums == 1) {
      multiply_parts(column, lane, mask, table, sums[0]);
    } else {
      multiply_halves(column, lane, mask, table, sums);
    }
#pragma unroll
    for (int i = 0; i < 4; ++i)
#pragma unroll
      for (int h = 0; h < kSums; ++h) {
        rows[i / 2] += scales.scale[h][i] * sums[h][i];
        if constexpr (Format::kOffset) rows[i / 2] -= scales.offset[h][i] * column.sums[h][i % 2];
      }
  }

 private:
  /// Each part of 32 has separate accumulators, of which one column counts.
  __device__ __forceinline__ void multiply_parts(const Column& column, unsigned lane, unsigned mask,
                                                 const PairTable& table, float (&sums)[4]) const {
#pragma unroll
    for (int pair = 0; pair < 4; ++pair) {
      float both[2][4] = {};
#pragma unroll
      for (int i = 0; i < 2; ++i) {
        unsigned upper[4], lower[4];
        const int part = pair * 2 + i;
        decode(part / 4, 0, part % 4, mask, table, upper);
        decode(part / 4, 1, part % 4, mask, table, lower);
#pragma unroll
        for (int h = 0; h < 2; ++h) {
          multiply_tile(T(), both[i], upper[2 * h], lower[2 * h], upper[2 * h + 1],
                        lower[2 * h + 1], column.x[2 * h], column.x[2 * h + 1]);
        }
      }
#pragma unroll
      for (int i = 0; i < 4; ++i)
        sums[i] = pair == 0 || lane % 4 == static_cast<unsigned>(pair) ? both[i % 2][i] : sums[i];
    }
  }
  /// Each half of a part has separate accumulators; x is zero outside of its column.
  __device__ __forceinline__ void multiply_halves(const Column& column, unsigned lane,
                                                  unsigned mask, const PairTable& table,
                                                  float (&sums)[kSums][4]) const {
    unsigned
        lane_part;  // unknown to the compiler, which would keep all that it chooses in registers
    asm volatile("mov.b32 %0, %1;" : "=r"(lane_part) : "r"(lane / 4));
#pragma unroll
    for (int i = 0; i < kSums * 4; ++i) sums[i / 4][i % 4] = 0;
#pragma unroll
    for (int part = 0; part < 8; ++part) {
      unsigned upper[4], lower[4], x[4];
      decode(part / 4, 0, part % 4, mask, table, upper);
      decode(part / 4, 1, part % 4, mask, table, lower);
#pragma unroll
      for (int j = 0; j < 4; ++j) x[j] = lane_part == static_cast<unsigned>(part) ? column.x[j] : 0;
#pragma unroll
      for (int h = 0; h < 2; ++h) {
        multiply_tile(T(), sums[h], upper[2 * h], lower[2 * h], upper[2 * h + 1], lower[2 * h + 1],
                      x[2 * h], x[2 * h + 1]);
      }
    }
  }
};

/// All lanes of a warp call it: adds the sums of two rows a lane to the sums of 16 rows.
__device__ __forceinline__ void keep_rows(float (&rows)[2], unsigned lane, float* warp_rows) {
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    rows[half] += __shfl_xor_sync(~0u, rows[half], 1);
    rows[half] += __shfl_xor_sync(~0u, rows[half], 2);
    if (lane % 4 == 0) warp_rows[half * 8 + lane / 4] = rows[half];
  }
}

}  // namespace kernwright
