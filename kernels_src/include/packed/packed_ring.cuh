// Products of one row with quantised weights on Hopper: blocks stay, and copies of what comes next
// are on their way to shared memory. Each warp has a part of k, in one tile of 16 rows of the
// weights after the other.
#pragma once

#include <kernwright/packed_walk.cuh>

namespace kernwright {

/// A warp's stages, and the next unit of two blocks. `Gated`: behind each tile of the first half
/// comes that of the second.
template <typename Format, int Warps, int Stages, bool Gated = false>
struct PackedRing {
  using Stage = PackedStage<Format>;
  static constexpr unsigned kBytes = Stages * Stage::kBytes;
  unsigned char* memory;
  Mbarrier* full;
  unsigned lane, tiles, blocks, first, count;
  unsigned next_tile, next_unit, stage, parity;

  /// By all lanes. The weights may be fetched while the kernel in front still runs.
  __device__ __forceinline__ void start(const PackedArrays& weights, unsigned char* warp_memory,
                                        Mbarrier* barriers, unsigned warp, unsigned rows) {
    memory = warp_memory;
    full = barriers;
    lane = threadIdx.x % 32;
    tiles = (rows + 15) / 16;
    blocks = weights.blocks;
    const unsigned units = (blocks + 1) / 2, each = (units + Warps - 1) / Warps;
    first = min(warp * each, units);
    count = min(each, units - first);
    stage = parity = 0;
    if (is_elected()) {
#pragma unroll
      for (int i = 0; i < Stages; ++i) full[i].init(1);
      Mbarrier::publish();
    }
    rewind();
    // More than one stage would delay warps that still work for the previous kernel.
    issue<true>(weights, 0);
    rewind();
  }
  __device__ __forceinline__ void fill(const PackedArrays& weights) {
    for (int i = 0; i < Stages; ++i) issue<false>(weights, i);
  }
  __device__ __forceinline__ const unsigned char* wait() {
    full[stage].wait(parity);
    return memory + stage * Stage::kBytes;
  }
  /// Called after all reads of the stage: the reads are done long before the copy's first bytes
  /// come.
  __device__ __forceinline__ void advance(const PackedArrays& weights) {
    __syncwarp();
    issue<false>(weights, stage);
    if (++stage == Stages) {
      stage = 0;
      parity ^= 1;
    }
  }

 private:
  __device__ __forceinline__ void rewind() {
    next_tile = blockIdx.x;
    next_unit = 0;
  }
  /// The next unit, to a stage or (kFetch) to the second level of cache.
  template <bool kFetch>
  __device__ __forceinline__ void issue(const PackedArrays& weights, unsigned to_stage) {
    if (count == 0 || next_tile >= tiles) return;
    const unsigned at = (first + next_unit) * 2, some = min(2, blocks - at);
    const UInt64 block = static_cast<UInt64>(next_tile) * blocks + at;
    if (is_elected()) {
      Mbarrier& bar = full[to_stage];
      unsigned char* const stage_at = memory + to_stage * Stage::kBytes;
      unsigned bytes = 0;
      Stage::each(weights, block, block / 2, some,
                  [&](unsigned, const UInt8*, unsigned size) { bytes += size; });
      if (!kFetch) bar.arrive_expecting(bytes);
      Stage::each(weights, block, block / 2, some,
                  [&](unsigned to, const UInt8* from, unsigned size) {
                    if (kFetch) {
                      fetch_bulk(from, size);
                    } else {
                      copy_bulk(stage_at + to, from, size, bar);
                    }
                  });
    }
    if (++next_unit == count) {
      next_unit = 0;
      const bool goes_back = Gated && next_tile >= tiles / 2;
      next_tile += Gated && !goes_back ? tiles / 2 : gridDim.x;
      if (goes_back) next_tile = next_tile < tiles ? next_tile - tiles / 2 : tiles;
    }
  }
};

constexpr unsigned kKeptTiles = 8;  ///< whose accumulators wait until the warps of a block meet

/// Adds the accumulators of all warps for the block's next kKeptTiles tiles, the first of which is
/// `first`, of one row of x, times `factor`: `parts` has 16 of each tile and warp. The block has
/// met.
template <typename T, typename Act, int Warps, bool Gated = false>
__device__ __forceinline__ void add_kept_tiles(const SkinnyProblem& p, unsigned first,
                                               const float* parts, float factor = 1) {
  constexpr unsigned kEach = Gated ? 2 : 1;  // tiles whose accumulators meet
  for (unsigned i = threadIdx.x; i < kKeptTiles / kEach * 16; i += Warps * 32) {
    const unsigned n = (first + i / 16 * gridDim.x) * 16 + i % 16;
    if (n >= p.n / kEach) continue;
    const auto sum_up = [&](unsigned tile) {
      float sum = 0;
#pragma unroll
      for (int w = 0; w < Warps; ++w) sum += parts[(tile * Warps + w) * 16 + i % 16];
      return sum * factor;
    };
    const float sum = sum_up(i / 16 * kEach);
    if constexpr (Gated) {
      finish_gate<T, Act>(p, n, sum, sum_up(i / 16 * 2 + 1));
    } else {
      finish_sum<T, Act>(p, 0, 0, n, sum);
    }
  }
  __syncthreads();
}

}  // namespace kernwright
