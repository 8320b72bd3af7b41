// Products of some rows with quantised weights on Hopper: the tiles of 16 rows of the weights that
// a block has after each other, and their accumulators.
#pragma once

#include <kernwright/packed_walk.cuh>

namespace kernwright {

/// A block's part of k in each of its tiles, as stages: a tile is copied while earlier tiles are
/// multiplied. A tile's part of k lies in one piece, so one thread copies for all warps.
template <typename Format, int Units, int Stages>
struct TileStages {
  using Stage = PackedStage<Format, 2 * Units>;
  static constexpr unsigned kBytes = Stages * Stage::kBytes;
  unsigned char* memory;
  Mbarrier* full;
  unsigned tiles, blocks, first, count;  ///< units of two blocks of k: the first one, and how many
  unsigned stage, parity;

  /// By all threads, which then meet. Units are shared by the blocks of a cluster.
  __device__ __forceinline__ void start(const SkinnyProblem& p, const PackedArrays& weights,
                                        unsigned char* at, Mbarrier* barriers) {
    memory = at;
    full = barriers;
    tiles = (p.n + 15) / 16;
    blocks = weights.blocks;
    const unsigned units = (blocks + 1) / 2;
    first = units * blockIdx.y / p.splits;
    count = units * (blockIdx.y + 1) / p.splits - first;
    stage = parity = 0;
    if (threadIdx.x == 0) {
#pragma unroll
      for (int i = 0; i < Stages; ++i) full[i].init(1);
      Mbarrier::publish();
    }
  }
  /// The first tiles, to the second level of cache or (kCopy) to the stages. By one thread.
  template <bool kCopy>
  __device__ __forceinline__ void fill(const PackedArrays& weights) {
    for (unsigned i = 0; i < Stages; ++i) issue<kCopy>(weights, i, blockIdx.x + i * gridDim.x);
  }
  __device__ __forceinline__ const unsigned char* wait() {
    full[stage].wait(parity);
    return memory + stage * Stage::kBytes;
  }
  /// After all warps have read the stage of `tile`: by all threads.
  __device__ __forceinline__ void advance(const PackedArrays& weights, unsigned tile) {
    if (threadIdx.x == 0) issue<true>(weights, stage, tile + Stages * gridDim.x);
    if (++stage == Stages) {
      stage = 0;
      parity ^= 1;
    }
  }

 private:
  template <bool kCopy>
  __device__ __forceinline__ void issue(const PackedArrays& weights, unsigned to_stage,
                                        unsigned tile) {
    if (tile >= tiles) return;
    const unsigned some = min(2 * count, blocks - 2 * first);
    const UInt64 block = static_cast<UInt64>(tile) * blocks + 2 * first;
    Mbarrier& bar = full[to_stage];
    unsigned char* const at = memory + to_stage * Stage::kBytes;
    unsigned bytes = 0;
    Stage::each(weights, block, block / 2, some,
                [&](unsigned, const UInt8*, unsigned size) { bytes += size; });
    if (kCopy) bar.arrive_expecting(bytes);
    Stage::each(weights, block, block / 2, some,
                [&](unsigned to, const UInt8* from, unsigned size) {
                  if (kCopy) {
                    copy_bulk(at + to, from, size, bar);
                  } else {
                    fetch_bulk(from, size);
                  }
                });
  }
};

/// The accumulators of the warps of a block, and of the blocks of a cluster, for tiles of 16 rows
/// of the weights and 8 * ColTiles rows of x. Two consecutive tiles have separate buffers, so a
/// block meets once for each tile. A cluster meets once for kKept tiles.
template <int Warps, int ColTiles>
struct TileAccumulators {
  static constexpr unsigned kPitch = 20;  ///< of a column: lanes that write meet different banks
  static constexpr unsigned kWarpAccumulators = 8 * ColTiles * kPitch,
                            kTileAccumulators = 8 * ColTiles * 16;
  static constexpr unsigned kKept = 4, kThreads = Warps * 32;
  float *parts, *kept;
  unsigned turn = 0, count = 0, first_tile = 0;

  __device__ __forceinline__ explicit TileAccumulators(float* memory)
      : parts(memory), kept(memory + 2 * Warps * kWarpAccumulators) {}
  /// Behind all accumulators.
  __device__ __forceinline__ float* end(unsigned splits) const {
    return kept + (splits > 1 ? 2 * kKept * kTileAccumulators : 0);
  }

  /// A warp's accumulators, before the block meets.
  __device__ __forceinline__ void spread(unsigned warp, unsigned lane,
                                         const float (&accumulators)[ColTiles][4]) {
    float* const turn_parts = parts + turn % 2 * (Warps * kWarpAccumulators);
#pragma unroll
    for (int i = 0; i < 4 * ColTiles; ++i) {
      const unsigned column = i / 4 * 8 + lane % 4 * 2 + i % 2, row = i % 4 / 2 * 8 + lane / 4;
      turn_parts[warp * kWarpAccumulators + column * kPitch + row] = accumulators[i / 4][i % 4];
    }
  }
  template <typename T, typename Act>
  __device__ __forceinline__ void add(const SkinnyProblem& p, unsigned tile) {
    const float* const turn_parts = parts + turn % 2 * (Warps * kWarpAccumulators);
    float* const here = kept + (turn / kKept % 2 * kKept + count) * kTileAccumulators;
    if (count == 0) first_tile = tile;
    // Warps take turns where half of them suffice.
    for (unsigned i = (threadIdx.x + turn * kTileAccumulators) % kThreads; i < kTileAccumulators;
         i += kThreads) {
      const unsigned m = i / 16, n = tile * 16 + i % 16;
      if (m >= p.m) break;
      float sum = 0;
#pragma unroll
      for (int w = 0; w < Warps; ++w)
        sum += turn_parts[w * kWarpAccumulators + m * kPitch + i % 16];
      if (p.splits > 1) {
        here[i] = sum;
      } else if (n < p.n) {
        finish_sum<T, Act>(p, 0, m, n, sum);
      }
    }
    ++turn;
    if (p.splits == 1 || (++count < kKept && tile + gridDim.x < (p.n + 15) / 16)) return;
    add_blocks<T, Act>(p, kept + (turn - 1) / kKept % 2 * (kKept * kTileAccumulators));
    count = 0;
  }

 private:
  /// Each block has a share of the kept tiles. Kept tiles and the next ones have separate buffers,
  /// so the cluster meets once for them.
  template <typename T, typename Act>
  __device__ __forceinline__ void add_blocks(const SkinnyProblem& p, const float* local) {
    cluster_sync();
    for (unsigned i = (blockIdx.y * kThreads + threadIdx.x) * 4; i < count * kTileAccumulators;
         i += p.splits * kThreads * 4) {
      const unsigned m = i % kTileAccumulators / 16,
                     tile = first_tile + i / kTileAccumulators * gridDim.x;
      if (m >= p.m) continue;
      float sum[4] = {};
#pragma unroll 4
      for (unsigned rank = 0; rank < p.splits; ++rank) {
        const float4 part = read_four(local + i, rank);
        sum[0] += part.x;
        sum[1] += part.y;
        sum[2] += part.z;
        sum[3] += part.w;
      }
      finish_four<T, Act>(p, 0, m, tile * 16 + i % 16, sum);
    }
  }
};

}  // namespace kernwright
