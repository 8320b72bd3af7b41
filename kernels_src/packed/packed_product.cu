// Products of few rows with quantised weights, which pass the memory once, straight into registers.
#include <kernwright/packed_walk.cuh>

using namespace kernwright;

/// Blocks that share a multiprocessor: with few accumulators 512 threads have registers there.
template <int Warps, int ColTiles>
__device__ constexpr int resident_blocks() {
  return ColTiles == 1 && Warps < 16 ? 16 / Warps : 1;
}

/// A block has 16 * RowTiles rows of the weights and all rows of x, at most 8 * ColTiles, which
/// begin at multiples of 16 bytes. With p.ahead the weights are fetched to the second level of
/// cache while the kernel in front still runs.
template <typename T, typename Format, typename Act, int Warps, int RowTiles, int ColTiles,
          int Unroll>
__global__ void __launch_bounds__(Warps * 32, (resident_blocks<Warps, ColTiles>()))
    packed_tiles(SkinnyProblem p, PackedArrays weights) {
  // Chunks of whole blocks, then what is left, block by block.
  const unsigned whole = p.k / 128 / Unroll, chunks = whole + weights.blocks - whole * Unroll;
  const unsigned each = (chunks + p.splits - 1) / p.splits;
  const unsigned begin = blockIdx.y * each, end = min(begin + each, chunks);
  PackedWalk<T, Format, RowTiles, ColTiles> walk;
  const unsigned tile = blockIdx.x * RowTiles;
  if (p.ahead > 0 && threadIdx.x == 0 && tile < (p.n + 15) / 16) {
    const UInt64 block = static_cast<UInt64>(tile) * weights.blocks;
    PackedStage<Format>::each(
        weights, block, block / 2, weights.blocks,
        [](unsigned, const UInt8* from, unsigned bytes) { fetch_bulk(from, bytes); });
  }
  pdl_launch_then_wait();
  walk.start(p, weights);
  unsigned chunk = begin + threadIdx.x / 32;
#pragma unroll 1
  for (; chunk < min(end, whole); chunk += Warps) {
    walk.template advance<Unroll, true>(weights, static_cast<UInt64>(chunk) * Unroll);
  }
#pragma unroll 1
  for (; chunk < end; chunk += Warps) {
    walk.template advance<1, false>(weights, chunk - whole + whole * Unroll);
  }
  add_warps<T, Act, Warps>(p, 0, blockIdx.x * (16 * RowTiles), walk.accumulators);
}

template <typename T, typename Act>
__global__ void __launch_bounds__(256) add_packed_splits(SkinnyProblem p) {
  add_parts<T, Act>(p);
}
