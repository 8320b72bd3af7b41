// Products of some rows with quantised weights: x of a warp's units of k, which stays in registers
// while the warp passes from tile to tile of the weights.
#pragma once

#include <kernwright/packed_lanes.cuh>

namespace kernwright {

/// A lane's x of up to `Units` units, for 8 * ColTiles rows of x; and the accumulators of a tile.
template <typename T, typename Format, int ColTiles, int Units>
struct HeldColumns {
  using Ready = typename Format::Scales::Ready;
  static constexpr int kRun = Format::kRun, kGroup = Format::kGroup, kGroups = 128 / kGroup;
  /// A warp's sums of x, the factors of offsets; four lanes have sums for each group.
  static constexpr int kSums = Format::kOffset ? Units * 2 * kGroups * 8 * ColTiles : 0;
  using Pair = Pack<float, 2 * ColTiles>;  ///< a lane's columns of all tiles
  unsigned x[Units][2][4][ColTiles][4];
  float accumulators[ColTiles][4];
  unsigned lane, mask;
  PairTable table;
  Pair* x_sums;

  /// Zeros beyond the end of k. Rows beyond the last are copies of it: their accumulators are not
  /// stored.
  __device__ __forceinline__ void load(const SkinnyProblem& p, unsigned first) {
#pragma unroll
    for (int c = 0; c < ColTiles; ++c) {
      const T* const row =
          static_cast<const T*>(p.x) + min(c * 8 + lane / 4, p.m - 1) * p.x_row + lane % 4 * kRun;
#pragma unroll
      for (int i = 0; i < Units; ++i)
#pragma unroll
        for (int part = 0; part < 8; ++part)
#pragma unroll
          for (int piece = 0; piece < 8 / kRun; ++piece) {
            const unsigned at = (first + i) * 256 + part * 32 + piece * 16;
            Pack<UInt32, kRun / 2> pack = {};
            if (at + lane % 4 * kRun < p.k)
              pack = *reinterpret_cast<const Pack<UInt32, kRun / 2>*>(row + at);
#pragma unroll
            for (int j = 0; j < kRun / 2; ++j)
              x[i][part / 4][part % 4][c][piece * (kRun / 2) + j] = pack.value[j];
          }
    }
  }
  /// The sums of x, by products with ones: four lanes have the sums of their columns.
  __device__ __forceinline__ void add() {
    constexpr unsigned kOne = PairBits<T>::kOne;
#pragma unroll
    for (int i = 0; i < 2 * Units; ++i)
#pragma unroll
      for (int group = 0; group < kGroups; ++group) {
        Pair all;
#pragma unroll
        for (int c = 0; c < ColTiles; ++c) {
          float made[4] = {};
#pragma unroll
          for (int at = group * kGroup; at < (group + 1) * kGroup; at += 16) {
            const auto& part_columns = x[i / 2][i % 2][at / 32][c];
            multiply_tile(T(), made, kOne, kOne, kOne, kOne, part_columns[at % 32 / 8],
                          part_columns[at % 32 / 8 + 1]);
          }
          all.value[2 * c] = made[0];
          all.value[2 * c + 1] = made[1];
        }
        if (lane < 4) x_sums[(i * kGroups + group) * 4 + lane] = all;
      }
    __syncwarp();
  }

  __device__ __forceinline__ void clear() {
#pragma unroll
    for (int i = 0; i < 4 * ColTiles; ++i) accumulators[i / 4][i % 4] = 0;
  }
  /// Adds the products with block `u` of unit `unit`.
  __device__ __forceinline__ void multiply(const Format (&raw)[2], int unit, int u) {
    const Ready scales[2] = {raw[0].scales.ready(), raw[1].scales.ready()};
    float parts[ColTiles][4];
#pragma unroll
    for (int part = 0; part < 4; ++part) {
      unsigned upper[4], lower[4];
      decode(raw[0], part, upper);
      decode(raw[1], part, lower);
#pragma unroll
      for (int h = 0; h < 2; ++h) {
        const int at = part * 32 + h * 16;
#pragma unroll
        for (int c = 0; c < ColTiles; ++c) {
          if (at % kGroup == 0) parts[c][0] = parts[c][1] = parts[c][2] = parts[c][3] = 0;
          multiply_tile(T(), parts[c], upper[2 * h], lower[2 * h], upper[2 * h + 1],
                        lower[2 * h + 1], x[unit][u][part][c][2 * h],
                        x[unit][u][part][c][2 * h + 1]);
        }
        if ((at + 16) % kGroup == 0) add_group(scales, parts, unit * 2 + u, at / kGroup);
      }
    }
  }

 private:
  __device__ __forceinline__ void decode(const Format& raw, int part, unsigned (&pairs)[4]) const {
    using Codes = typename Format::Codes;
    if constexpr (TakesPairTable<Codes>::kValue) {
      table.decode(raw.codes.low.word[part], pairs);
    } else if constexpr (CodeMask<Codes>::kValue != 0) {
      Codes::decode_masked(raw.codes, part, mask, pairs);
    } else {
      raw.decode(part, pairs);
    }
  }
  __device__ __forceinline__ void add_group(const Ready (&scales)[2],
                                            const float (&parts)[ColTiles][4], int block,
                                            int group) {
    const float scale[2] = {scales[0].scale_at(group), scales[1].scale_at(group)};
#pragma unroll
    for (int i = 0; i < 4 * ColTiles; ++i)
      accumulators[i / 4][i % 4] += scale[i % 4 / 2] * parts[i / 4][i % 4];
    if constexpr (Format::kOffset) {
      const float offset[2] = {Format::offset(scales[0], group, scale[0]),
                               Format::offset(scales[1], group, scale[1])};
      const Pair x_sum = x_sums[(block * kGroups + group) * 4 + lane % 4];
#pragma unroll
      for (int i = 0; i < 4 * ColTiles; ++i)
        accumulators[i / 4][i % 4] -= offset[i % 4 / 2] * x_sum.value[i / 4 * 2 + i % 2];
    }
  }
};

}  // namespace kernwright
